import ByteKernels
import Deflate

/// permessage-deflate on one connection (RFC 7692): its contexts, made at the first compressed message and given back
/// between messages where the agreement does not let them live on.
final class DeflateSession {
    /// What a sync flush ends with and the sender left out (§7.2.1).
    private static let tail: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

    let context: DeflateContext
    private let policy: DeflatePolicy
    private let keepsInflater: Bool
    private let keepsDeflater: Bool
    private let inflaterBits: Int
    private let deflaterBits: Int
    private var inflater: Inflater?
    /// Whether nothing was inflated since a message began or a last block ended.
    private var isAtStart = true
    private var deflater: Deflater?

    init(_ parameters: PermessageDeflateParameters, policy: DeflatePolicy, role: Role, share: DeflateContext) {
        self.context = share
        self.policy = policy
        let isServer = role == .server
        self.keepsInflater = !(isServer ? parameters.clientNoContextTakeover : parameters.serverNoContextTakeover)
        self.keepsDeflater =
            !(isServer ? parameters.serverNoContextTakeover : parameters.clientNoContextTakeover)
            && policy.ownContextTakeover
        self.inflaterBits = isServer ? parameters.clientWindowBits : parameters.serverWindowBits
        let granted = isServer ? parameters.serverWindowBits : parameters.clientWindowBits
        self.deflaterBits = min(granted, policy.ownWindowBits)
    }

    // MARK: Inflating

    /// Inflates into the share's output from offset `written` on, and advances `used` and `written`.
    func inflate(_ input: RawSpan, used: inout Int, written: inout Int) -> InflateStatus {
        while true {
            let before = used
            let progress = self.step(input, &used, &written)
            if used > before { self.isAtStart = false }
            switch progress {
            case .needsInput: return .needsInput
            case .outputFull: return .outputFull
            case nil: return .corrupt
            case .streamEnd:
                // A block marked as the last one ends nothing here (§7.2.3.4).
                self.inflater?.continuePastEnd()
                self.isAtStart = true
                if used == input.byteCount { return .needsInput }
            }
        }
    }

    /// Gives the inflater the tail of the message.
    ///
    /// Data that is nothing at all, or ends with a block marked as the last one, has no place for the tail: such
    /// senders forget an empty block that §7.2.1 wants, but nothing is missing.
    /// - Parameter tailGiven: bytes of the tail given before; 0 again when the message is complete.
    /// - Returns: `.needsInput` when the message is complete; a tail that completes nothing shows data cut short.
    func finishMessage(tailGiven: inout Int, written: inout Int) -> InflateStatus {
        if !self.isAtStart || tailGiven > 0 {
            let stop = Self.tail.withRawSpan { self.inflate($0, used: &tailGiven, written: &written) }
            guard stop == .needsInput else { return stop }
            // The tail may also complete a block marked as the last one, behind which the inflater is at a start.
            guard self.isAtStart || self.inflater?.isBetweenBlocks == true else { return .corrupt }
        }
        tailGiven = 0
        self.isAtStart = true
        if !self.keepsInflater, let inflater = self.inflater {
            self.inflater = nil
            self.context.pool.recycle(inflater)
        }
        return .needsInput
    }

    /// - Returns: `nil` for corrupt data, or where there is no memory for an inflater.
    private func step(_ input: RawSpan, _ used: inout Int, _ written: inout Int) -> InflateProgress? {
        guard
            let inflater = self.inflater ?? self.context.pool.takeInflater(format: .raw, windowBits: self.inflaterBits)
        else { return nil }
        self.inflater = inflater
        return self.context.output.withMutableRawSpan { output in
            do throws(InflateFailure) {
                return try inflater.inflate(input, consumed: &used, into: &output, written: &written)
            } catch {
                return nil
            }
        }
    }

    // MARK: Deflating

    /// Whether a message that begins with so many bytes is worth compressing.
    func shouldCompress(count: Int, isWhole: Bool) -> Bool {
        !isWhole || count >= self.policy.minimumSize
    }

    /// Compresses one frame's payload into the share's `compressed`.
    /// - Returns: whether there was memory for a deflater.
    func deflate(_ payload: RawSpan, endsMessage: Bool) -> Bool {
        let settings = DeflaterSettings(
            format: .raw, windowBits: self.deflaterBits, level: self.policy.level, memoryLevel: self.policy.memoryLevel)
        guard let deflater = self.deflater ?? self.context.pool.takeDeflater(settings) else { return false }
        self.deflater = deflater
        self.context.compressed.removeAll(keepingCapacity: true)
        deflater.deflate(payload, flush: endsMessage ? .sync : .none, appendingTo: &self.context.compressed)
        guard endsMessage else { return true }
        if self.context.compressed.count >= 4 { self.context.compressed.removeLast(4) }
        // An empty block, for an empty message (§7.2.3.6).
        if self.context.compressed.isEmpty { self.context.compressed.append(0) }
        if !self.keepsDeflater {
            self.deflater = nil
            self.context.pool.recycle(deflater)
        }
        return true
    }

    deinit {
        if let inflater = self.inflater { self.context.pool.recycle(inflater) }
        if let deflater = self.deflater { self.context.pool.recycle(deflater) }
    }
}

/// What all compressing connections of one thread share: inflaters and deflaters between uses, and scratch that none
/// of them keeps anything in.
package final class DeflateContext {
    /// Bytes inflated by one event at most.
    package static let outputCapacity = 64 << 10

    package let pool: DeflatePool
    var output = [UInt8](repeating: 0, count: DeflateContext.outputCapacity)
    /// Compressed bytes of the frame that is being written.
    var compressed: [UInt8] = []

    /// Lends what was compressed last.
    package func withCompressed<R>(_ body: (RawSpan) -> R) -> R {
        self.compressed.withRawSpan(body)
    }

    /// Lends what the last event inflated.
    package func withInflated<R>(_ count: Int, _ body: (RawSpan) -> R) -> R {
        self.output.withRawSpan { body($0.extracting(0..<min(count, $0.byteCount))) }
    }

    package init() {
        self.pool = DeflatePool()
    }
}
