import ByteKernels
import StreamTransport
import Synchronization

/// Owns an upgraded connection: sends given bytes and records its input. Confined to the loop except for its gates and
/// its `heard`.
final class UpgradeRecorder: TransportConsumer, @unchecked Sendable {
    let ended = Gate()
    let inputEnded = Gate()
    let progressed = Gate()
    private let bytes = Mutex<[UInt8]>([])
    private let end = Mutex<TransportEnd?>(nil)
    private let mark: String
    let heardMark = Gate()
    var transport: (any Transport)?

    /// - Parameter mark: what opens `heardMark`.
    init(mark: String = "\u{0}") { self.mark = mark }

    var heard: String { String(decoding: self.bytes.withLock { $0 }, as: UTF8.self) }
    var howItEnded: TransportEnd? { self.end.withLock { $0 } }

    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        let copy = [UInt8](bytes.bytes)
        self.bytes.withLock { $0 += copy }
        if self.heard.contains(self.mark) { self.heardMark.open() }
        return copy.count
    }

    func inputClosed() { self.inputEnded.open() }
    func outputProgressed() { self.progressed.open() }

    func transportEnded(_ end: TransportEnd) {
        self.end.withLock { $0 = end }
        self.transport = nil
        for gate in [self.heardMark, self.inputEnded, self.progressed, self.ended] { gate.open() }
    }
}
