// WebSocketChat URL NAME: joins the chat at URL, which sends each message to all members, as `NAME: TEXT`.
import Foundation
import URLLoading

final class Connection: NSObject, URLSessionWebSocketDelegate, @unchecked Sendable {
    private let lock = NSLock()
    private var notes: [String] = []
    private let ended = DispatchSemaphore(value: 0)

    private func note(_ text: String) { self.lock.withLock { self.notes.append(text) } }
    var log: [String] { self.lock.withLock { self.notes } }

    func waitForEnd() -> Bool { self.ended.wait(timeout: .now() + 20) == .success }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        self.note("open \(`protocol` ?? "-")")
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        self.note("close \(closeCode.rawValue) \(String(decoding: reason ?? Data(), as: UTF8.self))")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        self.note("complete")
        self.ended.signal()
    }
}

struct Unexpected: Error {
    let what: String
}

func expect(_ text: String, from task: URLSessionWebSocketTask) async throws {
    switch try await task.receive() {
    case .string(let got) where got == text: break
    case .string(let got): throw Unexpected(what: "\(got) instead of \(text)")
    case .data(let data): throw Unexpected(what: "\(data.count) bytes")
    @unknown default: throw Unexpected(what: "something new")
    }
}

func ping(_ task: URLSessionWebSocketTask) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, Error>) in
        task.sendPing { error in
            if let error = error { continuation.resume(throwing: error) } else { continuation.resume() }
        }
    }
}

let arguments = CommandLine.arguments
guard arguments.count == 3, let url = URL(string: arguments[1]) else {
    print("usage: WebSocketChat URL NAME")
    exit(64)
}
let name = arguments[2]
let connection = Connection()
let session = URLSession(configuration: .default, delegate: connection, delegateQueue: nil)
let task = session.webSocketTask(with: url, protocols: ["chat"])
task.resume()

do {
    try await task.send(.string(name))
    try await expect("\(name) joined", from: task)
    for line in ["hello", "Grüße, 世界 🌍", String(repeating: "long ", count: 20_000)] {
        try await task.send(.string(line))
        try await expect("\(name): \(line)", from: task)
    }
    try await ping(task)

    let picture = Data((0..<70_000).map { UInt8(truncatingIfNeeded: $0) })
    try await task.send(.data(picture))
    guard case .data(let same) = try await task.receive(), same == picture else {
        throw Unexpected(what: "another picture")
    }
} catch {
    print("failed:", error, connection.log)
    exit(1)
}

task.cancel(with: .normalClosure, reason: Data("bye".utf8))
guard connection.waitForEnd() else {
    print("no end:", connection.log)
    exit(1)
}
print(connection.log.joined(separator: ", "))
guard connection.log.first == "open chat", connection.log.last == "complete", task.closeCode == .normalClosure else {
    print("closed with \(task.closeCode.rawValue)")
    exit(1)
}
session.invalidateAndCancel()
