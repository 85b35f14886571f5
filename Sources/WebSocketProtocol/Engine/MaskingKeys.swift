/// Masking keys for frames (RFC 6455 §5.3), taken in bulk from a generator that must be cryptographic. For one thread.
public final class MaskingKeys {
    private var keys: [UInt32] = []
    private let refill: () -> (first: UInt32, more: [UInt32])

    /// - Parameter refill: gives fresh random words: one, so that no frame ever goes without, and any more for the
    ///   frames after it.
    public init(refill: @escaping () -> (first: UInt32, more: [UInt32])) {
        self.refill = refill
    }

    func next() -> UInt32 {
        if let key = self.keys.popLast() { return key }
        let (first, more) = self.refill()
        self.keys = more
        return first
    }
}
