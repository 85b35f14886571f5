import Synchronization

/// What is known of a class of delegates: which messages it answers itself.
///
/// There is no asking an object for its methods here. So the body that stands in for a missing method says so when it
/// runs (`LeftOut`), and what a class showed once is remembered: for a class it never changes.
final class DelegateTraits: Sendable {
    private static let known = Mutex<[ObjectIdentifier: DelegateTraits]>([:])

    private let answered = Atomic<UInt64>(0)
    private let leftOut = Atomic<UInt64>(0)

    private init() {}

    static func of(_ delegate: AnyObject) -> DelegateTraits {
        let type = ObjectIdentifier(type(of: delegate))
        return self.known.withLock { known in
            if let traits = known[type] { return traits }
            let traits = DelegateTraits()
            known[type] = traits
            return traits
        }
    }

    /// `nil` while it was never asked.
    func answers(_ method: DelegateMethod) -> Bool? {
        if self.answered.load(ordering: .relaxed) & method.bit != 0 { return true }
        return self.leftOut.load(ordering: .relaxed) & method.bit != 0 ? false : nil
    }

    func showed(_ method: DelegateMethod, answers: Bool) {
        if answers {
            self.answered.bitwiseOr(method.bit, ordering: .relaxed)
        } else {
            self.leftOut.bitwiseOr(method.bit, ordering: .relaxed)
        }
    }
}
