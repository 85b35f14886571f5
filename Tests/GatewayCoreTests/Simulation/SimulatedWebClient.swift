import ByteKernels
import SessionTasks
import StreamTransport
import TestSupport
import WebSocketProtocol

/// A WebSocket client of a simulated load, one of our own tasks on a loop of its own.
final class SimulatedWebClient {
    enum Ending {
        /// Closes when everything has come back.
        case closesWhenDone
        /// Closes as soon as everything is sent.
        case closesAtOnce
        case resets
    }

    let task: WebSocketTask
    let ending: Ending
    /// The other end says back what it hears, message by message.
    let keepsMessages: Bool
    /// What the other end says by itself and then ends; `nil` for an echo.
    let expected: [UInt8]?
    private(set) var end: WebSocketEnd?
    private(set) var sent: [[UInt8]] = []
    private(set) var heard: [[UInt8]] = []
    private var left: Int
    private var hasEnded = false

    init(_ task: WebSocketTask, keepsMessages: Bool, expecting expected: [UInt8]?, using chance: inout SeededGenerator)
    {
        self.task = task
        self.keepsMessages = keepsMessages
        self.expected = expected
        self.left = Int.random(in: 0...12, using: &chance)
        let drawn = Int.random(in: 0..<10, using: &chance)
        self.ending = drawn < 6 ? .closesWhenDone : drawn < 9 ? .closesAtOnce : .resets
    }

    func start() {
        self.task.whenEnded { self.end = $0 }
        self.receive()
        self.task.resumeOnLoop()
    }

    private func receive() {
        self.task.receive { result in
            switch result {
            case .success(.data(let bytes)): self.heard.append(bytes)
            case .success(.string(let text)): self.heard.append(Array(text.utf8))
            case .failure: return
            }
            self.closeIfDone()
            self.receive()
        }
    }

    func step(using chance: inout SeededGenerator) {
        guard self.end == nil, !self.hasEnded else { return }
        if self.left > 0 {
            self.left -= 1
            let bytes = chance.bytes(Int.random(in: 1...6000, using: &chance))
            self.sent.append(bytes)
            self.task.send(.data(bytes)) { _ in }
            return
        }
        switch self.ending {
        case .closesWhenDone: self.closeIfDone()
        case .closesAtOnce: self.close()
        case .resets:
            self.hasEnded = true
            self.task.reset()
        }
    }

    private var heardCount: Int { self.heard.reduce(0) { $0 + $1.count } }

    private func closeIfDone() {
        let whole = self.expected?.count ?? self.sent.reduce(0) { $0 + $1.count }
        guard self.left == 0, self.ending == .closesWhenDone, self.heardCount == whole else { return }
        self.close()
    }

    private func close() {
        self.hasEnded = true
        self.task.close(.normalClosure)
    }

    /// What is wrong with what this client saw; `nil` if nothing is.
    var complaint: String? {
        let said = self.expected ?? self.sent.flatMap(\.self)
        let came = self.heard.flatMap(\.self)
        guard said.starts(with: came) else { return "heard what was never said" }
        if self.keepsMessages, !self.sent.starts(with: self.heard) { return "message boundaries moved" }
        guard let end = self.end, end.isClean, end.code == .normalClosure else { return nil }
        // Who closes at once towards a byte stream asks for nothing more.
        if self.ending == .closesAtOnce, !self.keepsMessages { return nil }
        guard came.count == said.count else {
            return "that \(self.ending) had a clean close after \(came.count) of \(said.count) bytes"
        }
        return nil
    }
}
