import ByteKernels
import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// Sends every byte back, and the end of the stream after them.
final class StreamEcho: TransportConsumer {
    /// Released when the task ends.
    private var task: StreamTask?
    private let watermarks: BufferWatermarks

    init(watermarks: BufferWatermarks) {
        self.watermarks = watermarks
    }

    func start(_ task: StreamTask) {
        self.task = task
        task.attach(self)
        task.resumeReading()
    }

    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        guard let task = self.task else { return bytes.byteCount }
        if task.send(bytes.bytes) > self.watermarks.high {
            task.pauseReading()
            task.awaitProgress()
        }
        return bytes.byteCount
    }

    func inputClosed() {
        self.task?.close(linger: .seconds(5))
    }

    func outputProgressed() {
        guard let task = self.task, task.queuedBytes <= self.watermarks.low else { return }
        task.resumeReading()
    }

    func transportEnded(_ end: TransportEnd) {
        self.task = nil
    }
}

/// Echoes every message with its kind and, if configured, its fragments.
///
/// A message in one piece, which is nearly every one, goes from the receive buffer straight into the output. Others are
/// assembled first, so that a message that turns out to break a rule is not echoed in part. A long message is
/// compressed in fragments over several turns, and nothing is read meanwhile.
final class WebSocketEcho: WebSocketRelay {
    /// Maximum number of fragments whose boundaries are kept; a message of more is returned unfragmented.
    private static let fragmentLimit = 4096

    private struct Unfinished {
        var bytes: [UInt8] = []
        /// Where frames ended, in bytes from the start of the message.
        var ends: [Int] = []
    }

    /// A message being echoed. Created only for a message in several pieces.
    private final class Answer {
        let kind: MessageKind
        let bytes: [UInt8]
        let ends: [Int]
        /// Number of frames in `ends` already sent.
        var frames = 0
        /// Number of bytes already sent.
        var start = 0

        init(_ kind: MessageKind, _ bytes: [UInt8], ends: [Int]) {
            (self.kind, self.bytes, self.ends) = (kind, bytes, ends)
        }

        var isSent: Bool { self.frames == self.ends.count }
    }

    private let keepsFragmentation: Bool
    /// Released when the task ends.
    private var task: WebSocketTask?
    private var unfinished: Unfinished?
    private var answer: Answer?

    init(keepsFragmentation: Bool) {
        self.keepsFragmentation = keepsFragmentation
    }

    func start(_ task: WebSocketTask) {
        self.task = task
    }

    func webSocketOpened() {}

    func received(_ mark: FramePosition, _ bytes: RawSpan, by task: WebSocketTask, over transport: any Transport) {
        if mark.startsMessage, mark.endsMessage, bytes.byteCount <= WebSocketTask.compressedPiece || !task.compresses {
            return task.stopReadingIfBehind(
                task.sendFrame(mark.kind, startsMessage: true, endsMessage: true, bytes, over: transport))
        }
        self.append(mark, bytes)
        guard mark.endsMessage, let message = self.unfinished.take() else { return }
        let keeps = self.keepsFragmentation && message.ends.count < Self.fragmentLimit
        self.answer = Answer(mark.kind, message.bytes, ends: keeps ? message.ends : [message.bytes.count])
        self.sendBack(by: task)
    }

    private func append(_ mark: FramePosition, _ bytes: RawSpan) {
        var message = self.unfinished.take() ?? Unfinished()
        message.bytes.append(bytes)
        if mark.endsFrame, message.ends.count < Self.fragmentLimit { message.ends.append(message.bytes.count) }
        self.unfinished = message
    }

    /// Sends as much of the message as the turn's budget allows.
    private func sendBack(by task: WebSocketTask) {
        guard let answer = self.answer else { return }
        let most = task.compresses ? WebSocketTask.compressedPiece : answer.bytes.count
        while !answer.isSent {
            if task.compresses, task.loop.budgetIsSpent {
                task.pauseReading()
                return task.loop.inNextTurn(self)
            }
            self.sendPiece(of: answer, atMost: most, by: task)
        }
        self.answer = nil
        task.stopReadingIfBehind(task.queuedBytes)
    }

    private func sendPiece(of answer: Answer, atMost most: Int, by task: WebSocketTask) {
        let frameEnd = answer.ends[answer.frames]
        let end = min(frameEnd, answer.start + most)
        let startsMessage = answer.start == 0 && answer.frames == 0
        if end == frameEnd { answer.frames += 1 }
        let (start, kind, isSent) = (answer.start, answer.kind, answer.isSent)
        answer.bytes.withRawSpan { bytes in
            _ = task.sendFrame(
                kind, startsMessage: startsMessage, endsMessage: isSent, bytes.extracting(start..<end))
        }
        answer.start = end
    }

    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool {
        true
    }
    func outputProgressed() {}

    func webSocketEnded(_ end: WebSocketEnd) {
        self.unfinished = nil
        self.answer = nil
        self.task = nil
    }
}

extension WebSocketEcho: TurnEndTarget {
    func turnEnded() {
        guard let task = self.task, self.answer != nil else { return }
        self.sendBack(by: task)
        if self.answer == nil { task.resumeReading() }
    }
}
