import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

extension Response {
    static func json(_ bytes: [UInt8], status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
        .json(ByteBuffer(bytes: bytes), status: status, headers: headers)
    }

    static func json(_ body: ByteBuffer, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
        var headers = headers
        headers[.contentType] = "application/json"
        headers[.cacheControl] = "no-store"
        // So that a terminal shows its prompt on a line of its own, and that tools that read lines see the last one.
        var body = body
        body.writeInteger(UInt8(ascii: "\n"))
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: body))
    }

    static func json(_ model: some Encodable, status: HTTPResponse.Status = .ok) -> Response {
        .json(JSONBody.encode(model), status: status)
    }

    static var noContent: Response { Response(status: .noContent) }
}
