import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// A body of Server-Sent Events.
enum EventStream {
    /// Writes one stream's events.
    struct Writer {
        fileprivate var body: any ResponseBodyWriter

        /// `data` is one line.
        mutating func event(_ data: [UInt8], id: UInt64?, type: String) async throws {
            var buffer = ByteBuffer()
            if let id { buffer.writeString("id: \(id)\n") }
            buffer.writeString("event: \(type)\ndata: ")
            buffer.writeBytes(data)
            buffer.writeString("\n\n")
            try await self.body.write(buffer)
        }

        /// Keeps the connection from looking dead.
        mutating func comment() async throws {
            try await self.body.write(ByteBuffer(string: ":\n\n"))
        }
    }

    /// A response whose body `pour` writes until it returns, which it must when the client has gone away.
    static func response(
        _ call: ControlCall, _ pour: @escaping @Sendable (inout Writer, ClientGone) async throws -> Void
    ) async throws -> Response {
        let gone = try await call.clientGone()
        let body = ResponseBody { writer in
            var stream = Writer(body: writer)
            // At once, so that the client knows that it is heard.
            try await stream.comment()
            try await pour(&stream, gone)
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
    }
}
