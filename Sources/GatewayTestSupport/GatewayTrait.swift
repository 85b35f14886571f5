import Testing

/// Runs each test of a suite with a gateway of its own, which is `LoopbackGateway.current`.
package struct GatewayTrait: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing body: @Sendable () async throws -> Void
    ) async throws {
        try await LoopbackGateway.run { gateway in
            try await LoopbackGateway.$current.withValue(gateway) { try await body() }
        }
    }
}

extension Trait where Self == GatewayTrait {
    package static var gateway: Self { Self() }
}
