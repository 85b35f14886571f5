import Foundation
import Testing

/// Limits how many tests load at a time: with hundreds at once each takes as long as all together, and timeouts end.
struct LoadingTrait: TestTrait, SuiteTrait, TestScoping {
    private static let turnstile = TaskSemaphore(places: 6)
    /// Sessions of the tests must not take the proxies of the environment, nor the shared session, which nobody configures.
    private static let proxiesAreUnset: Bool = {
        for name in ProcessInfo.processInfo.environment.keys where name.lowercased().hasSuffix("_proxy") {
            unsetenv(name)
        }
        return true
    }()

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        _ = Self.proxiesAreUnset
        await Self.turnstile.enter()
        defer { Self.turnstile.leave() }
        try await function()
    }
}

extension Trait where Self == LoadingTrait {
    /// A few at a time.
    static var loading: LoadingTrait { LoadingTrait() }
}
