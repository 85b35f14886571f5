import ByteKernels
import WebSocketProtocol

/// Feeds a scanner and a forwarder with the same bytes like a relay, and records their output.
struct RelayFeed {
    /// An event other than data, and the number of bytes forwarded before it.
    struct Mark: Equatable {
        let mark: FramePosition
        let place: Int
    }

    /// The observations of one of the two.
    struct Log: Equatable {
        var marks: [Mark] = []
        var passedOn: [UInt8] = []

        var hasEnded: Bool { self.marks.last?.mark.isEnd == true }

        mutating func add(_ mark: FramePosition) {
            self.marks.append(Mark(mark: mark, place: self.passedOn.count))
        }
    }

    private var scanner: FrameScanner
    private var forwarder: FrameForwarder
    private var keptByScanner: [UInt8] = []
    private var keptByForwarder: [UInt8] = []
    private(set) var scanned = Log()
    private(set) var forwarded = Log()
    /// Most bytes that either left over.
    private(set) var mostKept = 0

    init(_ setting: FrameSetting) {
        self.scanner = FrameScanner(
            from: setting.sender, reservedBits: setting.deflate == nil ? .none : .compression,
            maximumMessageSize: setting.limit)
        let keys = MaskingKeys { (0x3D21_FA37, []) }
        self.forwarder = FrameForwarder(from: setting.sender, maximumMessageSize: setting.limit, keys: keys)
    }

    mutating func feed(_ piece: [UInt8]) {
        self.scan(piece)
        self.forward(piece)
        self.mostKept = max(self.mostKept, self.keptByScanner.count, self.keptByForwarder.count)
    }

    private mutating func scan(_ piece: [UInt8]) {
        let bytes = self.keptByScanner + piece
        var position = 0
        bytes.withRawSpan { span in
            while let found = self.scanner.scan(span, at: &position) {
                switch found {
                case .data(let piece): self.scanned.passedOn += bytes[piece.range]
                case .ping(let payload, let range): self.pass(bytes[range], .ping(payload))
                case .pong(let payload, let range): self.pass(bytes[range], .pong(payload))
                case .close(let code, let reason, let range): self.pass(bytes[range], .close(code, reason: reason))
                case .violation(let violation): self.scanned.add(.violation(violation))
                }
            }
        }
        self.keptByScanner = self.scanned.hasEnded ? [] : Array(bytes[position...])
    }

    private mutating func pass(_ bytes: ArraySlice<UInt8>, _ mark: FramePosition) {
        self.scanned.passedOn += bytes
        self.scanned.add(mark)
    }

    private mutating func forward(_ piece: [UInt8]) {
        var bytes = self.keptByForwarder + piece
        var position = 0
        bytes.withMutableRawSpan { span in
            while let event = self.forwarder.next(&span, at: &position) {
                switch event {
                case .frames(let run): self.forwarded.passedOn += [UInt8](span.bytes.extracting(run.range))
                case .ping(let payload): self.forwarded.add(.ping(payload))
                case .pong(let payload): self.forwarded.add(.pong(payload))
                case .close(let code, let reason): self.forwarded.add(.close(code, reason: reason))
                case .violation(let violation): self.forwarded.add(.violation(violation))
                }
            }
        }
        self.keptByForwarder = self.forwarded.hasEnded ? [] : Array(bytes[position...])
    }
}
