import ByteKernels
import SessionTasks
import StreamTransport
import TestSupport
import WebSocketProtocol

/// A WebSocket client of a simulated load: one of our tasks on a separate loop.
final class SimulatedWebClient {
    enum EndMode {
        /// Closes when every echo has arrived.
        case closesWhenDone
        /// Closes as soon as everything is sent.
        case closesAtOnce
        case resets
    }

    let task: WebSocketTask
    let door: LoadListener
    let ending: EndMode
    private(set) var end: WebSocketEnd?
    private(set) var sent: [[UInt8]] = []
    private(set) var heard: [[UInt8]] = []
    private var left: Int
    private let tag: [UInt8]
    private var isOpen = false
    private(set) var hasEnded = false

    /// - Parameter tag: the first bytes sent, by which a sink identifies the client.
    init(_ task: WebSocketTask, at door: LoadListener, tag: [UInt8], using chance: inout SeededGenerator) {
        self.task = task
        self.door = door
        self.tag = tag
        self.left = Int.random(in: 0...12, using: &chance)
        let drawn = Int.random(in: 0..<10, using: &chance)
        self.ending = drawn < 6 ? .closesWhenDone : drawn < 9 ? .closesAtOnce : .resets
    }

    func start() {
        self.task.whenEnded { self.end = $0 }
        self.task.openObserver = {
            self.isOpen = true
            self.closeIfDone()
        }
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
            return self.send(self.message(using: &chance))
        }
        switch self.ending {
        case .closesWhenDone: self.closeIfDone()
        case .closesAtOnce: self.close()
        case .resets:
            self.hasEnded = true
            self.task.reset()
        }
    }

    private func message(using chance: inout SeededGenerator) -> [UInt8] {
        let count = Int.random(in: 1...6000, using: &chance)
        let bytes = self.door.offersCompression ? chance.repetitiveBytes(count) : chance.bytes(count)
        return self.sent.isEmpty ? self.tag + bytes : bytes
    }

    private func send(_ message: [UInt8]) {
        self.sent.append(message)
        self.task.send(.data(message)) { _ in }
    }

    private var said: [UInt8] { self.sent.flatMap(\.self) }
    private var heardCount: Int { self.heard.reduce(0) { $0 + $1.count } }

    private func closeIfDone() {
        guard self.left == 0, self.ending == .closesWhenDone, self.isOpen, self.end == nil,
            self.heardCount == self.door.answer(to: self.said).count
        else { return }
        self.close()
    }

    private func close() {
        self.hasEnded = true
        self.task.close(.normalClosure)
    }

    private var sawCleanEnd: Bool {
        self.end.map { $0.isClean && $0.code == .normalClosure } ?? false
    }

    /// Whether this client received everything expected.
    var isContent: Bool {
        guard self.ending == .closesWhenDone, self.door.promise != .nothing else { return true }
        return self.sawCleanEnd && self.heardCount == self.door.answer(to: self.said).count
    }

    /// The state of this client, for the message of a failure.
    var lot: String {
        "got \(self.heardCount) of \(self.door.answer(to: self.said).count) bytes, "
            + "end \(String(describing: self.end))"
    }

    /// The violation in the messages that this client received; `nil` if there is none.
    var complaint: String? {
        guard self.door.answer(to: self.said).starts(with: self.heard.flatMap(\.self)) else {
            return "heard what was never said"
        }
        return self.door.keepsMessages && !self.sent.starts(with: self.heard) ? "message boundaries moved" : nil
    }

    /// The violation in the end that this client saw; `nil` if there is none, or no end.
    var complaintAboutEnd: String? {
        // After an immediate close towards a byte stream the client expects nothing more.
        guard self.sawCleanEnd, self.ending != .closesAtOnce || self.door.keepsWhatIsUnderWay else { return nil }
        let whole = self.door.answer(to: self.said).count
        guard self.heardCount < whole else { return nil }
        return "that \(self.ending) had a clean close after \(self.heardCount) of \(whole) bytes"
    }
}

extension SeededGenerator {
    /// `count` bytes in runs, which compression makes much smaller.
    fileprivate mutating func repetitiveBytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let run = Int.random(in: 1...200, using: &self)
            bytes += [UInt8](repeating: UInt8(truncatingIfNeeded: self.next()), count: min(run, count - bytes.count))
        }
        return bytes
    }
}
