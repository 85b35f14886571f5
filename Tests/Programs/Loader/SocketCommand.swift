import ArgumentParser
import Foundation
import URLLoading

struct SocketCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "socket", abstract: "Open a WebSocket, talk a little, and close it in order.")

    @Argument var url: String
    @Option(help: "NAME:VALUE.") var header: [String] = []
    @Option var subprotocol: [String] = []
    @Option(help: "A message of this text; an answer is waited for.") var send: [String] = []
    @OptionGroup var sessions: SessionOptions

    func run() async throws {
        guard let url = URL(string: self.url) else { throw ValidationError("'\(self.url)' is no URL") }
        let ears = SocketDelegate(answers: try self.sessions.answers())
        let configuration = self.sessions.configuration(for: url)
        let session = URLSession(configuration: configuration, delegate: ears, delegateQueue: nil)
        let task = self.task(url, session)
        task.resume()
        var messages: [String] = []
        var failure: (any Error)?
        do {
            for text in self.send {
                try await task.send(.string(text))
                switch try await task.receive() {
                case .string(let text): messages.append(text)
                case .data(let data): messages.append(data.base64EncodedString())
                @unknown default: break
                }
            }
            try await ears.opened()
            task.cancel(with: .normalClosure, reason: nil)
        } catch {
            failure = error
        }
        let error = await ears.completed()
        let report = SocketReport(
            task, messages: messages, ears: ears, failure: failure, error: error,
            cookies: configuration.httpCookieStorage?.cookies ?? [])
        try JSONLine.print(report)
        session.invalidateAndCancel()
        if failure != nil { throw ExitCode.failure }
    }

    private func task(_ url: URL, _ session: URLSession) -> URLSessionWebSocketTask {
        guard self.subprotocol.isEmpty else { return session.webSocketTask(with: url, protocols: self.subprotocol) }
        var request = URLRequest(url: url)
        for line in self.header {
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            if parts.count == 2 { request.addValue(parts[1], forHTTPHeaderField: parts[0]) }
        }
        return session.webSocketTask(with: request)
    }
}
