import Foundation
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// What a WebSocket task is asked for, from any thread; in order, and once the opening handshake is done.
extension WebSocketConnection {
    typealias Message = URLSessionWebSocketTask.Message

    func send(_ message: Message, _ handler: @escaping @Sendable ((any Error)?) -> Void) {
        let line = self.life.core.line
        let carried = message.carried
        self.life.loop.execute {
            self.socket.send(carried) { result in
                let error = self.error(of: result)
                line.add { handler(error) }
            }
        }
    }

    func receive(_ handler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        let line = self.life.core.line
        self.life.loop.execute {
            self.socket.receive { result in
                let told = result.map { Message($0) }.mapError { self.error($0) as any Error }
                line.add { handler(told) }
            }
        }
    }

    func ping(_ handler: @escaping @Sendable ((any Error)?) -> Void) {
        let line = self.life.core.line
        self.life.loop.execute {
            self.socket.sendPing([]) { result in
                let error = self.error(of: result)
                line.add { handler(error) }
            }
        }
    }

    private func error<Value>(of result: Result<Value, TaskFailure>) -> URLError? {
        if case .failure(let failure) = result { self.error(failure) } else { nil }
    }

    // MARK: For Swift tasks that wait

    /// Cancelling withdraws a message that has not begun.
    func send(_ message: Message) async throws {
        let carried = message.carried
        let error: URLError? = await AwaitedOperation.perform(on: self.life.loop) { answer in
            self.socket.send(carried) { answer(self.error(of: $0)) }
        } withdraw: {
            self.socket.withdrawSend($0)
        }
        if let error { throw error }
    }

    /// Cancelling loses no message: one that was not given out goes to the next who asks.
    /// - Returns: `nil` after a clean end.
    func receive() async throws -> Message? {
        let result: Result<Message?, URLError> = await AwaitedOperation.perform(on: self.life.loop) { answer in
            self.socket.receive { result in
                switch result {
                case .success(let message): answer(.success(Message(message)))
                case .failure(.closed) where self.life.verdict == nil: answer(.success(nil))
                case .failure(let failure): answer(.failure(self.error(failure)))
                }
            }
        } withdraw: {
            self.socket.withdrawReceive($0)
        }
        return try result.get()
    }

    /// Cancelling ends the wait.
    func ping() async throws {
        let error: URLError? = await AwaitedOperation.perform(on: self.life.loop) { answer in
            self.socket.sendPing([]) { answer(self.error(of: $0)) }
        } withdraw: {
            self.socket.withdrawSend($0)
        }
        if let error { throw error }
    }
}

extension URLSessionWebSocketTask.Message {
    init(_ message: WebSocketTask.Message) {
        self =
            switch message {
            case .data(let bytes): .data(Data(bytes))
            case .string(let text): .string(text)
            }
    }

    var carried: WebSocketTask.Message {
        switch self {
        case .data(let data): .data([UInt8](data))
        case .string(let text): .string(text)
        }
    }
}

extension URLSessionWebSocketTask.CloseCode {
    init(_ code: WebSocketProtocol.CloseCode) {
        self.init(number: Int(code.rawValue))
    }

    /// `nil` for a Close frame without a code. Others that may not go over the wire are sent as 1000.
    var onWire: WebSocketProtocol.CloseCode? {
        switch self {
        case .invalid, .noStatusReceived: nil
        default: WebSocketProtocol.CloseCode(rawValue: UInt16(exactly: self.rawValue) ?? 1000)
        }
    }
}
