import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

extension Response {
    /// How long what is still on its way from the client is thrown away, so that it can read the answer before the
    /// connection is reset (RFC 9112 §9.6).
    private static let lingering = TimeAmount.seconds(2)

    /// The same answer, after which the connection ends: for a request whose body nobody wants to see to its end, or
    /// behind which nothing can come.
    func ending(_ channel: any Channel) -> Response {
        var headers = self.headers
        guard headers[.connection] != "close" else { return self }
        headers[.connection] = "close"
        if headers[.contentLength] == nil, let length = self.body.contentLength {
            headers[.contentLength] = "\(length)"
        }
        let body = self.body
        return Response(
            status: self.status, headers: headers,
            body: ResponseBody(contentLength: self.body.contentLength) { writer in
                try await body.write(writer)
                channel.close(mode: .output, promise: nil)
                channel.eventLoop.scheduleTask(in: Self.lingering) { channel.close(promise: nil) }
            })
    }
}
