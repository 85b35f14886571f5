import ByteKernels
import Deflate

/// permessage-deflate on one connection (RFC 7692). Takes zlib contexts from the pool at the first compressed message,
/// and returns them after each message without context takeover.
final class DeflateSession {
    /// The end of a sync flush, which the sender removed (§7.2.1).
    private static let tail: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

    let context: DeflateContext
    private let policy: DeflatePolicy
    private let keepsInflater: Bool
    private let keepsDeflater: Bool
    private let inflaterBits: Int
    private let deflaterBits: Int
    private var inflater: Inflater?
    /// Whether nothing was inflated since the message or a final block.
    private var isAtStart = true
    private var deflater: Deflater?

    init(_ parameters: PermessageDeflateParameters, policy: DeflatePolicy, role: Role, context: DeflateContext) {
        self.context = context
        self.policy = policy
        let isServer = role == .server
        self.keepsInflater = !(isServer ? parameters.clientNoContextTakeover : parameters.serverNoContextTakeover)
        self.keepsDeflater =
            !(isServer ? parameters.serverNoContextTakeover : parameters.clientNoContextTakeover)
            && policy.ownContextTakeover
        self.inflaterBits = isServer ? parameters.clientWindowBits : parameters.serverWindowBits
        let negotiatedBits = isServer ? parameters.serverWindowBits : parameters.clientWindowBits
        self.deflaterBits = min(negotiatedBits, policy.ownWindowBits)
    }

    // MARK: Inflating

    /// Inflates into the context's output from offset `written` on, and advances `used` and `written`.
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
                // A final block does not end the stream (§7.2.3.4).
                self.inflater?.continuePastEnd()
                self.isAtStart = true
                if used == input.byteCount { return .needsInput }
            }
        }
    }

    /// Inflates the tail at the end of a message.
    ///
    /// Empty data, or data that ends with a final block, needs no tail: the sender omitted the empty block of §7.2.1,
    /// but no data is missing.
    /// - Parameter tailOffset: number of tail bytes already inflated; 0 again when the message is complete.
    /// - Returns: `.needsInput` when the message is complete; a tail that completes no block means truncated data.
    func finishMessage(tailOffset: inout Int, written: inout Int) -> InflateStatus {
        if !self.isAtStart || tailOffset > 0 {
            let status = Self.tail.withRawSpan { self.inflate($0, used: &tailOffset, written: &written) }
            guard status == .needsInput else { return status }
            // The tail may also complete a final block, after which the inflater is at a start.
            guard self.isAtStart || self.inflater?.isBetweenBlocks == true else { return .corrupt }
        }
        tailOffset = 0
        self.isAtStart = true
        if !self.keepsInflater, let inflater = self.inflater {
            self.inflater = nil
            self.context.pool.recycle(inflater)
        }
        return .needsInput
    }

    /// - Returns: `nil` for corrupt data, or without memory for an inflater.
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

    /// Whether to compress a message whose first frame has `count` bytes.
    func shouldCompress(count: Int, isWhole: Bool) -> Bool {
        !isWhole || count >= self.policy.minimumSize
    }

    private var settings: DeflaterSettings {
        DeflaterSettings(
            format: .raw, windowBits: self.deflaterBits, level: self.policy.level, memoryLevel: self.policy.memoryLevel)
    }

    /// Settings under which a whole message is compressed, if earlier messages do not matter.
    func sharedCompression(count: Int) -> SharedCompression? {
        guard !self.keepsDeflater, self.shouldCompress(count: count, isWhole: true) else { return nil }
        return SharedCompression(
            windowBits: self.deflaterBits, level: self.policy.level, memoryLevel: self.policy.memoryLevel)
    }

    /// Compresses one frame's payload into the context's `compressed`.
    /// - Returns: whether there was memory for a deflater.
    func deflate(_ payload: RawSpan, endsMessage: Bool) -> Bool {
        guard let deflater = self.deflater ?? self.context.pool.takeDeflater(self.settings) else { return false }
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

/// Parameters with which the same message is compressed to the same bytes.
package struct SharedCompression: Hashable, Sendable {
    fileprivate let windowBits: Int
    fileprivate let level: Int
    fileprivate let memoryLevel: Int
}

/// The state that compressing connections of one thread share: a pool of zlib contexts, and output buffers whose
/// contents are valid until the next use.
package final class DeflateContext {
    /// Most bytes inflated for one event.
    package static let outputCapacity = 64 << 10

    package let pool: DeflatePool
    var output = [UInt8](repeating: 0, count: DeflateContext.outputCapacity)
    /// Compressed payload of the current frame.
    var compressed: [UInt8] = []

    /// Calls `body` with the payload compressed last.
    package func withCompressed<R>(_ body: (RawSpan) -> R) -> R {
        self.compressed.withRawSpan(body)
    }

    /// Calls `body` with the first `count` bytes inflated for the last event.
    package func withInflated<R>(_ count: Int, _ body: (RawSpan) -> R) -> R {
        self.output.withRawSpan { body($0.extracting(0..<min(count, $0.byteCount))) }
    }

    package init() {
        self.pool = DeflatePool()
    }
}
