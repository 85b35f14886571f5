import ArgumentParser
import Foundation
import URLLoading

struct SocketCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "socket", abstract: "Echo messages through completion handlers on the delegate queue.")

    @Argument var url: String
    @Argument var count: Int
    @Option var size = 512

    func run() async throws {
        guard let url = URL(string: self.url) else { throw ValidationError("'\(self.url)' is no URL") }
        let session = URLSession(configuration: .ephemeral)
        let task = session.webSocketTask(with: url)
        task.resume()
        let echo = Echo(task, Data(repeating: 0x61, count: self.size))
        try await echo.run(self.count / 10)
        let measured = try await Measurement.of {
            try await echo.run(self.count)
            return self.count
        }
        try measured.tell()
        task.cancel(with: .normalClosure, reason: nil)
        session.finishTasksAndInvalidate()
    }

    /// A message at a time: the next is sent when the one before is back. Used from the delegate queue alone.
    private final class Echo: @unchecked Sendable {
        private let task: URLSessionWebSocketTask
        private let message: Data
        private var left = 0
        private var waiter: CheckedContinuation<Void, any Error>?

        init(_ task: URLSessionWebSocketTask, _ message: Data) {
            self.task = task
            self.message = message
        }

        func run(_ count: Int) async throws {
            try await withCheckedThrowingContinuation { waiter in
                self.waiter = waiter
                self.left = max(1, count)
                self.next()
            }
        }

        private func next() {
            self.task.send(.data(self.message)) { error in
                if let error { self.end(.failure(error)) }
            }
            self.task.receive { result in
                switch result {
                case .failure(let error): self.end(.failure(error))
                case .success:
                    self.left -= 1
                    if self.left == 0 { self.end(.success(())) } else { self.next() }
                }
            }
        }

        private func end(_ result: Result<Void, any Error>) {
            // The resumed waiter may set the next one at once.
            let waiter = self.waiter
            self.waiter = nil
            waiter?.resume(with: result)
        }
    }
}
