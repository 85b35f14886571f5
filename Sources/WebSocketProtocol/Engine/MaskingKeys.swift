/// Masking keys for frames (RFC 6455 §5.3), taken in bulk from a generator that must be cryptographic. For one thread.
public final class MaskingKeys {
    private var keys: [UInt32] = []
    private let refill: () -> [UInt32]

    /// - Parameter refill: gives some fresh random words, at least one.
    public init(refill: @escaping () -> [UInt32]) {
        self.refill = refill
    }

    func next() -> UInt32 {
        if let key = self.keys.popLast() { return key }
        self.keys = self.refill()
        return self.keys.popLast() ?? 0
    }
}
