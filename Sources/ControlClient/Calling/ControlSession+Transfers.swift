import Foundation
import URLLoading

extension ControlSession {
    /// A WebSocket to a path of the control plane; to be resumed.
    package func webSocketTask(_ target: String) throws(ControlFailure) -> URLSessionWebSocketTask {
        var request = URLRequest(url: try self.url(target, scheme: self.address.isSecure ? "wss" : "ws"))
        self.dress(&request)
        return self.session.webSocketTask(with: request)
    }

    /// Sends a file as a body, without holding it in memory.
    package func upload(_ request: ControlRequest, file: URL) async throws(ControlFailure) -> ControlAnswer {
        let made = try self.urlRequest(request, accept: "application/json, application/problem+json")
        let (body, response): (Data, URLResponse)
        do {
            (body, response) = try await self.session.upload(for: made, fromFile: file)
        } catch {
            throw ControlFailure(error, at: self.address)
        }
        guard let response = response as? HTTPURLResponse else { throw ControlFailure(foreign: 0, at: self.address) }
        let headers = ControlHeaders(response)
        guard (200...299).contains(response.statusCode) else {
            throw ControlFailure(refused: response.statusCode, headers, body, at: self.address)
        }
        return ControlAnswer(status: response.statusCode, headers: headers, body: body)
    }
}
