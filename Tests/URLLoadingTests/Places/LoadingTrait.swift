import Testing

/// Lets few tests load at a time: with hundreds at once every single one takes as long as all, and clocks run out.
struct LoadingTrait: TestTrait, SuiteTrait, TestScoping {
    private static let places = 6
    private static let turnstile = Turnstile(places: places)

    /// Whether no other test loads meanwhile: for those that look at clocks.
    let isAlone: Bool
    var isRecursive: Bool { !self.isAlone }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let count = self.isAlone ? Self.places : 1
        await Self.turnstile.enter(count)
        defer { Self.turnstile.leave(count) }
        try await function()
    }
}

extension Trait where Self == LoadingTrait {
    /// A few at a time.
    static var loading: LoadingTrait { LoadingTrait(isAlone: false) }
    /// The tests of a suite together, and no other.
    static var loadingAlone: LoadingTrait { LoadingTrait(isAlone: true) }
}
