import HTTPTypes
import HummingbirdCore
import NIOCore

/// A response with its whole body in memory.
struct BufferedResponse: Sendable {
    let status: HTTPResponse.Status
    let headers: HTTPFields
    let body: [UInt8]

    init(_ response: Response) async throws {
        let collector = BodyCollector()
        try await response.body.write(collector)
        self.status = response.status
        self.headers = response.headers
        self.body = collector.bytes
    }

    var response: Response {
        Response(
            status: self.status, headers: self.headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: self.body)))
    }
}

private final class BodyCollector: ResponseBodyWriter {
    private(set) var bytes: [UInt8] = []

    func write(_ buffer: ByteBuffer) async throws {
        self.bytes.append(contentsOf: buffer.readableBytesView)
    }

    func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
