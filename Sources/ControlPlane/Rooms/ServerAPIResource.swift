import ByteKernels
import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import Rooms
import StreamTransport
import WireText

/// `/api/`: Centrifugo's server API, for programs that publish in its rooms. An answer has the status 200 and a `result` or
/// an `error`; only requests without a key, or without valid JSON, have another status.
struct ServerAPIResource: Sendable {
    static let prefix = "/api/"
    private static let bodyLimit = 16 << 20
    /// Commands in one batch.
    private static let commandLimit = 1000

    let context: ControlContext

    var operations: [Operation] {
        let api = ServerAPI(self.context)
        let methods = ServerAPI.Method.allCases.map { method in
            Self.operation(method.rawValue) { call in
                let body = try await Self.body(call)
                let request = try Self.read(body) { (reader) throws(JSONSyntaxError) in
                    try ServerAPIRequest(&reader)
                }
                return ServerAPI.answer(await api.perform(method, request, call))
            }
        }
        return methods + [Self.operation("batch") { try await Self.batch($0, api) }]
    }

    private static func operation(
        _ name: String, _ handler: @escaping @Sendable (ControlCall) async throws -> [UInt8]
    ) -> Operation {
        var operation = Operation(
            "api/\(name)", .post, PathTemplate(Self.prefix + name), .apiKey,
            OperationDocument("Centrifugo's \(name)", responses: []), bodyLimit: Self.bodyLimit
        ) { .json(try await handler($0)) }
        operation.reach = .list
        return operation
    }

    /// Clients may send any media type, as Centrifugo's examples with curl do: the key proves that no web page sends it.
    private static func body(_ call: ControlCall) async throws -> [UInt8] {
        try call.checkNotCompressed()
        let body = Array(try await call.body().readableBytesView)
        guard body.isValidUTF8 else { throw ControlProblem.malformedJSON }
        return body.isEmpty ? Array("{}".utf8) : body
    }

    private static func read<Value>(
        _ body: [UInt8], _ read: (inout JSONReader) throws(JSONSyntaxError) -> Value
    ) throws(ControlProblem) -> Value {
        var reader = JSONReader(body)
        do throws(JSONSyntaxError) {
            let value = try read(&reader)
            try reader.finish()
            return value
        } catch {
            throw ControlProblem(400, "malformed-json", "The body is not valid JSON for this method: \(error).")
        }
    }

    // MARK: Batches

    private enum Command: Sendable {
        case call(ServerAPI.Method, ServerAPIRequest)
        case unknown
    }

    private static func batch(_ call: ControlCall, _ api: ServerAPI) async throws -> [UInt8] {
        let commands = try Self.read(try await Self.body(call)) { (reader) throws(JSONSyntaxError) in
            try Self.commands(&reader)
        }
        guard let commands else {
            throw ControlProblem(
                400, "too-many-commands", "A batch has at most \(Self.commandLimit) commands; send several batches.")
        }
        var text = JSONText()
        text.beginObject()
        text.key("replies")
        text.beginArray()
        for command in commands {
            switch command {
            case .unknown: text.raw(ServerAPI.answer(.failure(.init(.methodNotFound))))
            case .call(let method, let request):
                text.raw(ServerAPI.answer(await api.perform(method, request, call), named: method.rawValue))
            }
        }
        text.endArray()
        text.endObject()
        return text.bytes
    }

    /// - Returns: `nil` above the limit.
    private static func commands(_ reader: inout JSONReader) throws(JSONSyntaxError) -> [Command]? {
        var commands: [Command] = []
        var count = 0
        try reader.readObject { (name, value) throws(JSONSyntaxError) in
            // Commands are performed in order, also where `parallel` permits another one.
            guard name == "commands" else {
                try value.skipValue()
                return
            }
            if value.skipNull() { return }
            try value.readArray { (element) throws(JSONSyntaxError) in
                count += 1
                guard count <= Self.commandLimit else {
                    try element.skipValue()
                    return
                }
                commands.append(try Self.command(&element))
            }
        }
        return count <= Self.commandLimit ? commands : nil
    }

    /// An object with one member: the method's name, and its parameters.
    private static func command(_ element: inout JSONReader) throws(JSONSyntaxError) -> Command {
        var command = Command.unknown
        try element.readObject { (name, value) throws(JSONSyntaxError) in
            // Comparing long texts beyond ASCII may take long.
            guard name.text.utf8.count < 64, let method = ServerAPI.Method(rawValue: name.text) else {
                try value.skipValue()
                return
            }
            command = .call(method, value.skipNull() ? ServerAPIRequest() : try ServerAPIRequest(&value))
        }
        return command
    }
}
