import Foundation
import URLLoading

/// The code of the articles about streams and WebSockets, as it is printed there.
enum Connections {
    static func chat(_ url: URL) async throws {
        let socket = URLSession.shared.webSocketTask(with: url, protocols: ["chat"])
        socket.resume()
        try await socket.send(.string("hello"))
        switch try await socket.receive() {
        case .string(let text): print(text)
        case .data(let data): print(data.count, "bytes")
        }
        socket.cancel(with: .normalClosure, reason: Data("bye".utf8))
    }

    static func closeForAReasonOfOurOwn(_ socket: URLSessionWebSocketTask) {
        let code = URLSessionWebSocketTask.CloseCode(rawValue: 4001) ?? .normalClosure
        socket.cancel(with: code, reason: nil)
    }

    static func askForTheTime(_ host: String) async throws -> String {
        let stream = URLSession.shared.streamTask(withHostName: host, port: 13)
        stream.resume()
        let (data, isAtEnd) = try await stream.readData(ofMinLength: 1, maxLength: 1024, timeout: 10)
        if isAtEnd { stream.closeWrite() }
        return String(decoding: data ?? Data(), as: UTF8.self)
    }

    static func startTLS(_ stream: URLSessionStreamTask) async throws {
        try await stream.write(Data("STARTTLS\r\n".utf8), timeout: 10)
        _ = try await stream.readData(ofMinLength: 1, maxLength: 512, timeout: 10)
        stream.startSecureConnection()
        try await stream.write(Data("EHLO client.example\r\n".utf8), timeout: 10)
    }
}
