import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

extension Response {
    static func json(_ bytes: [UInt8], status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
        var headers = headers
        headers[.contentType] = "application/json"
        headers[.cacheControl] = "no-store"
        return Response(
            status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    static func json(_ model: some Encodable, status: HTTPResponse.Status = .ok) -> Response {
        .json(JSONBody.encode(model), status: status)
    }

    static var noContent: Response { Response(status: .noContent) }
}
