import ByteKernels
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// Sends every message back as it came: its kind, and if asked its fragments.
///
/// A message in one piece, which is nearly every one, goes from the receive buffer straight into the output. Others are
/// gathered first, so that a message that turns out to break a rule is not half echoed.
final class WebSocketEcho: WebSocketRelay {
    /// Fragments whose boundaries are kept; a message in more of them comes back in one.
    static let fragmentLimit = 4096

    private struct Unfinished {
        var bytes: [UInt8] = []
        /// Where frames ended, in bytes from the start of the message.
        var ends: [Int] = []
    }

    private let keepsFragmentation: Bool
    private var unfinished: Unfinished?

    init(keepsFragmentation: Bool) {
        self.keepsFragmentation = keepsFragmentation
    }

    func start(_ task: WebSocketTask) {}

    func webSocketOpened() {}

    func received(_ mark: FrameMark, _ bytes: RawSpan, by task: WebSocketTask, over transport: any Transport) {
        if mark.startsMessage, mark.endsMessage {
            return task.stopReadingIfBehind(
                task.sendFrame(mark.kind, startsMessage: true, endsMessage: true, bytes, over: transport))
        }
        self.gather(mark, bytes)
        guard mark.endsMessage, let message = self.unfinished else { return }
        self.unfinished = nil
        self.sendBack(message, mark.kind, by: task)
        task.stopReadingIfBehind(task.queuedBytes)
    }

    private func gather(_ mark: FrameMark, _ bytes: RawSpan) {
        var message = self.unfinished ?? Unfinished()
        self.unfinished = nil
        message.bytes.append(bytes)
        if mark.endsFrame, message.ends.count < Self.fragmentLimit { message.ends.append(message.bytes.count) }
        self.unfinished = message
    }

    private func sendBack(_ message: Unfinished, _ kind: MessageKind, by task: WebSocketTask) {
        let keeps = self.keepsFragmentation && message.ends.count < Self.fragmentLimit
        let ends = keeps ? message.ends : [message.bytes.count]
        message.bytes.withRawSpan { bytes in
            var start = 0
            for (index, end) in ends.enumerated() {
                let piece = bytes.extracting(start..<end)
                task.sendFrame(kind, startsMessage: index == 0, endsMessage: index == ends.count - 1, piece)
                start = end
            }
        }
    }

    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool {
        true
    }
    func outputProgressed() {}

    func webSocketEnded(_ end: WebSocketEnd) {
        self.unfinished = nil
    }
}
