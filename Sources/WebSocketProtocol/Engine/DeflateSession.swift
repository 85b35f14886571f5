import ByteKernels
import Deflate

/// permessage-deflate on one connection (RFC 7692): its contexts, made at the first compressed message and given back between messages
/// where the agreement does not let them live on.
final class DeflateSession {
    /// What a sync flush ends with and the sender left out (§7.2.1).
    private static let tail: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

    let share: DeflateShare
    private let policy: DeflatePolicy
    private let keepsInflater: Bool
    private let keepsDeflater: Bool
    private let inflaterBits: Int
    private let deflaterBits: Int
    private var inflater: Inflater?
    private var deflater: Deflater?

    init(_ parameters: PermessageDeflateParameters, policy: DeflatePolicy, role: Role, share: DeflateShare) {
        self.share = share
        self.policy = policy
        let isServer = role == .server
        self.keepsInflater = !(isServer ? parameters.clientNoContextTakeover : parameters.serverNoContextTakeover)
        self.keepsDeflater =
            !(isServer ? parameters.serverNoContextTakeover : parameters.clientNoContextTakeover) && policy.keepsOwnContext
        self.inflaterBits = isServer ? parameters.clientWindowBits : parameters.serverWindowBits
        let granted = isServer ? parameters.serverWindowBits : parameters.clientWindowBits
        self.deflaterBits = min(granted, policy.ownWindowBits)
    }

    // MARK: Inflating

    /// Inflates into the share's output from offset `written` on.
    /// - Returns: the bytes of `input` that were used; fewer than all when the output is full.
    func inflate(_ input: RawSpan, written: inout Int) throws(PeerViolation) -> Int {
        var consumed = 0
        while consumed < input.byteCount {
            let progress = try self.step(input, &consumed, &written)
            switch progress {
            case .needsInput, .outputFull: return consumed
            // A block marked as the last one ends nothing here (§7.2.3.4).
            case .streamEnd: self.inflater?.continuePastEnd()
            }
        }
        return consumed
    }

    /// Gives the inflater the tail of the message.
    /// - Parameter tailGiven: bytes of the tail given before; `nil` again when the message is complete.
    /// - Returns: whether the message is complete: otherwise there is more to come once the output was taken.
    func finishMessage(tailGiven: inout Int?, written: inout Int) throws(PeerViolation) -> Bool {
        var given = tailGiven ?? 0
        tailGiven = given
        while true {
            let result = Self.tail.withRawSpan { tail -> Result<InflateProgress, PeerViolation> in
                do throws(PeerViolation) {
                    return .success(try self.step(tail, &given, &written))
                } catch {
                    return .failure(error)
                }
            }
            tailGiven = given
            switch try result.get() {
            case .outputFull: return false
            case .streamEnd: self.inflater?.continuePastEnd()
            case .needsInput:
                tailGiven = nil
                self.messageInflated()
                return true
            }
        }
    }

    private func step(
        _ input: RawSpan, _ consumed: inout Int, _ written: inout Int
    ) throws(PeerViolation) -> InflateProgress {
        guard let inflater = self.inflater ?? self.share.pool.takeInflater(format: .raw, windowBits: self.inflaterBits) else {
            throw PeerViolation(.invalidCompressedData)
        }
        self.inflater = inflater
        var used = consumed
        var made = written
        let result = self.share.output.withMutableRawSpan { output -> Result<InflateProgress, InflateFailure> in
            do throws(InflateFailure) {
                return .success(try inflater.inflate(input, consumed: &used, into: &output, written: &made))
            } catch {
                return .failure(error)
            }
        }
        consumed = used
        written = made
        switch result {
        case .success(let progress): return progress
        case .failure: throw PeerViolation(.invalidCompressedData)
        }
    }

    private func messageInflated() {
        guard !self.keepsInflater, let inflater = self.inflater else { return }
        self.inflater = nil
        self.share.pool.giveBack(inflater)
    }

    // MARK: Deflating

    /// Whether a message that begins with so many bytes is worth compressing.
    func isWorthIt(count: Int, isWhole: Bool) -> Bool {
        !isWhole || count >= self.policy.minimumSize
    }

    /// Compresses one frame's payload into the share's `compressed`.
    /// - Returns: whether there was memory for a deflater.
    func deflate(_ payload: RawSpan, endsMessage: Bool) -> Bool {
        let settings = DeflaterSettings(
            format: .raw, windowBits: self.deflaterBits, level: self.policy.level, memoryLevel: self.policy.memoryLevel)
        guard let deflater = self.deflater ?? self.share.pool.takeDeflater(settings) else { return false }
        self.deflater = deflater
        self.share.compressed.removeAll(keepingCapacity: true)
        deflater.deflate(payload, flush: endsMessage ? .sync : .none, appendingTo: &self.share.compressed)
        guard endsMessage else { return true }
        if self.share.compressed.count >= 4 { self.share.compressed.removeLast(4) }
        // An empty block, for an empty message (§7.2.3.6).
        if self.share.compressed.isEmpty { self.share.compressed.append(0) }
        if !self.keepsDeflater {
            self.deflater = nil
            self.share.pool.giveBack(deflater)
        }
        return true
    }

    deinit {
        if let inflater = self.inflater { self.share.pool.giveBack(inflater) }
        if let deflater = self.deflater { self.share.pool.giveBack(deflater) }
    }
}
