import HTTPTransport
import NIOCore

extension ControlCall {
    /// Runs `work` and cancels it when the client goes away: what nobody would read must not be taken.
    func whileClientStays<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let gone = try await self.clientGone()
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await work() }
            group.addTask {
                await gone.wait()
                return nil
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() ?? nil else { throw CancellationError() }
            return value
        }
    }

    /// The handler that knows.
    func wire() async throws -> UpgradableWire.Reference {
        try await self.context.channel.eventLoop.submit {
            UpgradableWire.Reference(
                try self.context.channel.pipeline.syncOperations.handler(type: UpgradableWire.self))
        }.get()
    }

    func clientGone() async throws -> ClientGone {
        ClientGone(try await self.wire().clientGone)
    }
}
