import Foundation
import HTTPTransport

extension URLSession {
    func streamTask(to place: StreamPlace) -> URLSessionStreamTask {
        let task = URLSessionStreamTask(self.facts(nil), of: self)
        self.admit(task) {}
        return task
    }

    func webSocketTask(_ request: URLRequest, protocols: [String]) -> URLSessionWebSocketTask {
        let task = URLSessionWebSocketTask(self.facts(request), of: self)
        self.admit(task) {}
        return task
    }

    /// The connection of a data task that left HTTP becomes a stream task's, with the same number. On the loop.
    func becomeStream(_ old: URLSessionDataTask, _ connection: UpgradedConnection) {
        connection.close()
    }
}
