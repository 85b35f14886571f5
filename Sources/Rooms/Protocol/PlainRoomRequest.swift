import ByteKernels
import WireText

/// A plain HTTP request to the rooms.
package enum PlainRoomRequest: Sendable, Hashable {
    /// The client only receives, or publishes one message.
    case receive(UnidirectionalRequest)
    /// Commands of a client that connects, and whose further commands come with requests of their own.
    case connect([UInt8])
    case emulation(EmulationRequest)

    /// Members of commands. A client that only receives has none of them.
    private static let commandMembers: Set<MemberName> = [
        "connect", "subscribe", "unsubscribe", "presence", "presence_stats", "history", "ping", "send",
        "rpc", "refresh", "sub_refresh",
    ]

    /// - Parameter body: with Protobuf, of a client that sends commands.
    package init(_ body: [UInt8], encoding: ProtocolEncoding) throws(JSONSyntaxError) {
        if encoding == .json, !body.isValidUTF8 { throw JSONSyntaxError(.invalid("text that is not UTF-8"), at: 0) }
        var reader = CommandReader(body, encoding: encoding)
        if let command = try? reader.next(), case .connect = command.request {
            self = .connect(body)
        } else if let request = try? EmulationRequest(body, encoding: encoding), !request.session.isEmpty {
            self = .emulation(request)
        } else if encoding == .json {
            try Self.checkHasNoCommand(body)
            self = .receive(try UnidirectionalRequest(body))
        } else {
            throw JSONSyntaxError(.invalid("neither the command connect nor commands of a session"), at: 0)
        }
    }

    /// Whether it publishes at once.
    package var publishes: Bool {
        switch self {
        case .receive(let request): return request.publication != nil
        case .connect(let commands):
            var reader = CommandReader(commands, encoding: .json)
            while let command = try? reader.next() {
                if case .publish = command.request { return true }
            }
            return false
        case .emulation: return false
        }
    }

    /// Unknown members of a request to receive are ignored, but not those of a command that is malformed or not the first:
    /// its sender would get a stream that never answers it.
    private static func checkHasNoCommand(_ body: [UInt8]) throws(JSONSyntaxError) {
        guard !body.isEmpty else { return }
        var fields = JSONFields(JSONReader(body))
        try fields.readMessage([:]) { (name, value) throws(JSONSyntaxError) in
            let offset = value.reader.offset
            if name == "session" {
                guard try value.readString().isEmpty else {
                    throw JSONSyntaxError(.invalid("malformed commands of a session"), at: offset)
                }
            } else if Self.commandMembers.contains(name) {
                throw JSONSyntaxError(.invalid("a command that does not begin a session"), at: offset)
            } else {
                try value.skip()
            }
        }
    }
}

/// Commands of a client whose replies are a streaming response (Centrifuge's `EmulationRequest`).
package struct EmulationRequest: Sendable, Hashable {
    private static let numbers: FieldNumbers = [1: "node", 2: "session", 3: "data"]

    /// The node that has the client's response, as the client got it in the reply to `connect`. May be empty.
    package var node = ""
    /// As the client got it in the reply to `connect`; secret.
    package var session = ""
    /// In the encoding of the session.
    package var data: [UInt8] = []

    package init(_ body: [UInt8], encoding: ProtocolEncoding) throws(JSONSyntaxError) {
        switch encoding {
        case .json:
            var fields = JSONFields(JSONReader(body))
            // In JSON the commands are a text within the text.
            try self.read(&fields) { (value) throws(JSONSyntaxError) in Array(try value.readString().utf8) }
            var reader = fields.reader
            try reader.finish()
        case .protobuf:
            var fields = ProtobufFields(body)
            try self.read(&fields) { (value) throws(JSONSyntaxError) in try value.readBytes() }
        }
    }

    private mutating func read<Fields: FieldReader>(
        _ fields: inout Fields, data readData: (inout Fields) throws(JSONSyntaxError) -> [UInt8]
    ) throws(JSONSyntaxError) {
        var request = self
        try fields.readMessage(Self.numbers) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "node": request.node = try value.readString()
            case "session": request.session = try value.readString()
            case "data": request.data = try readData(&value)
            default: try value.skip()
            }
        }
        self = request
    }
}
