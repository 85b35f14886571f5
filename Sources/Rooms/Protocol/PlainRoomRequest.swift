import ByteKernels
import WireText

/// What a request by plain HTTP wants of the rooms.
package enum PlainRoomRequest: Sendable, Hashable {
    /// The client only receives, or publishes one message.
    case receive(UnidirectionalRequest)
    /// Commands of a client that connects, and whose further commands come with requests of their own.
    case connect([UInt8])
    case emulation(EmulationRequest)

    /// - Parameter body: with Protobuf, of a client that sends commands.
    package init(_ body: [UInt8], encoding: ProtocolEncoding) throws(JSONSyntaxError) {
        if encoding == .json, !body.isValidUTF8 { throw JSONSyntaxError(.invalid("text that is not UTF-8"), at: 0) }
        var reader = CommandReader(body, encoding: encoding)
        if let command = try? reader.next(), case .connect = command.request {
            self = .connect(body)
        } else if let request = try? EmulationRequest(body, encoding: encoding), !request.session.isEmpty {
            self = .emulation(request)
        } else if encoding == .json {
            self = .receive(try UnidirectionalRequest(body))
        } else {
            throw JSONSyntaxError(.invalid("neither the command connect nor commands of a session"), at: 0)
        }
    }
}

/// Commands of a client whose replies are a response that goes on (Centrifuge's `EmulationRequest`).
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
