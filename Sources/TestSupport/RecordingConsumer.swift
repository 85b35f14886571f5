import ByteKernels
import StreamTransport

/// A transport's owner that remembers what it is told, in order.
package final class RecordingConsumer: TransportConsumer {
    package enum Event: Equatable {
        case inputClosed
        case outputProgressed
        case ended(TransportEnd)
    }

    /// Bytes taken so far.
    package private(set) var received: [UInt8] = []
    package private(set) var events: [Event] = []
    /// How many bytes each offer had.
    package private(set) var offers: [Int] = []
    /// How many of the bytes offered are taken: all, unless a test says otherwise. May act on the transport.
    package var takes: (_ offered: Int) -> Int = { $0 }
    /// Whereto bytes go unseen after a long read; `nil` shows them all here.
    package var unseenTarget: SocketConnection?
    /// How many bytes went there.
    package private(set) var passed = 0
    package var onBytes: ([UInt8]) -> Void = { _ in }
    package var onInputClosed: () -> Void = {}
    package var onOutputProgressed: () -> Void = {}

    package init() {}

    package var end: TransportEnd? {
        for case .ended(let end) in self.events { return end }
        return nil
    }

    package var text: String {
        String(decoding: self.received, as: UTF8.self)
    }

    package func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        self.offers.append(bytes.byteCount)
        let taken = self.takes(bytes.byteCount)
        guard taken > 0 else { return taken }
        let start = self.received.count
        self.received.append(bytes.bytes.extracting(0..<taken))
        self.onBytes(Array(self.received[start...]))
        return taken
    }

    package func passedUnseen(_ count: Int, queued: Int) {
        self.passed += count
    }

    package func inputClosed() {
        self.events.append(.inputClosed)
        self.onInputClosed()
    }

    package func outputProgressed() {
        if self.events.last != .outputProgressed { self.events.append(.outputProgressed) }
        self.onOutputProgressed()
    }

    package func transportEnded(_ end: TransportEnd) {
        self.events.append(.ended(end))
    }
}
