import Synchronization

/// Set by the bodies that stand in for methods which a delegate leaves out.
final class LeftOut: Sendable {
    /// Of the call under way; `nil` where a program calls such a body itself.
    @TaskLocal static var current: LeftOut?

    private let flag = Atomic<Bool>(false)

    var wasCalled: Bool { self.flag.load(ordering: .relaxed) }

    static func call() {
        self.current?.flag.store(true, ordering: .relaxed)
    }

    /// - Returns: whether the delegate has a method of its own for what `body` called.
    static func watch(_ body: () -> Void) -> Bool {
        let mark = LeftOut()
        self.$current.withValue(mark, operation: body)
        return !mark.wasCalled
    }

    /// - Returns: `nil` where the delegate left the method out.
    static func watch<Answer>(_ body: () async -> Answer) async -> Answer? {
        let mark = LeftOut()
        let answer = await self.$current.withValue(mark, operation: body)
        return mark.wasCalled ? nil : answer
    }
}
