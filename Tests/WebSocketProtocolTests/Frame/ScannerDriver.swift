import ByteKernels
import WebSocketProtocol

/// Feeds a scanner like a relay, forwards its frames and extracts the payload itself, to compare it with an engine's.
final class ScannerDriver {
    private var scanner: FrameScanner
    private var kept: [UInt8] = []
    private var key: [UInt8] = [0, 0, 0, 0]
    private var phase = 0
    private(set) var seen: [Observation] = []
    /// Every byte of every range, in order.
    private(set) var forwarded: [UInt8] = []
    /// The number of forwarded bytes each time the scanner was between two frames.
    private(set) var boundaries: [Int] = []
    private(set) var mostKept = 0

    init(_ scanner: FrameScanner) {
        self.scanner = scanner
    }

    static func observe(_ bytes: [UInt8], by scanner: FrameScanner, fed feeding: Feeding) -> ScannerDriver {
        let driver = ScannerDriver(scanner)
        for piece in feeding.pieces(of: bytes) { driver.feed(piece) }
        return driver
    }

    func feed(_ piece: [UInt8]) {
        self.kept += piece
        var position = 0
        let bytes = self.kept
        bytes.withRawSpan { span in
            while let found = self.scanner.scan(span, at: &position) {
                self.see(found, bytes)
                if self.scanner.isAtFrameBoundary { self.boundaries.append(self.forwarded.count) }
            }
        }
        self.kept = self.seen.last?.isEnd == true ? [] : Array(bytes[position...])
        self.mostKept = max(self.mostKept, self.kept.count)
    }

    private func see(_ found: ScannedFrame, _ bytes: [UInt8]) {
        switch found {
        case .data(let piece):
            self.forwarded += bytes[piece.range]
            if piece.startsFrame {
                self.phase = 0
                if self.scanner.sender == .client {
                    self.key = Array(bytes[..<piece.payloadRange.lowerBound].suffix(4))
                }
            }
            var payload = Array(bytes[piece.payloadRange])
            for index in payload.indices { payload[index] ^= self.key[(self.phase + index) % 4] }
            self.phase += payload.count
            self.see(piece, payload)
        case .ping(let payload, let range):
            self.forwarded += bytes[range]
            self.seen.see(.ping(payload))
        case .pong(let payload, let range):
            self.forwarded += bytes[range]
            self.seen.see(.pong(payload))
        case .close(let code, let reason, let range):
            self.forwarded += bytes[range]
            self.seen.see(.close(code?.rawValue, reason: reason))
        case .violation(let violation): self.seen.see(.violation(violation.rule))
        }
    }

    /// An engine reports no header before its payload.
    private func see(_ piece: FramePiece, _ payload: [UInt8]) {
        if piece.startsMessage { self.messageStarts = true }
        guard !payload.isEmpty || piece.endsFrame else { return }
        self.seen.see(
            .data(
                piece.kind, payload, startsMessage: self.messageStarts, endsFrame: piece.endsFrame,
                endsMessage: piece.endsMessage))
        self.messageStarts = false
    }

    private var messageStarts = false
}
