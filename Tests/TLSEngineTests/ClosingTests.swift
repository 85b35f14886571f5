import TLSEngine
import Testing

@Suite("close_notify and truncation, RFC 8446 §6.1")
struct ClosingTests {
    @Test(arguments: ServerKind.allCases, [1, Int.max])
    func oneDirectionClosesAndTheOtherContinues(_ kind: ServerKind, _ chunk: Int) throws {
        let pair = try self.open(kind)
        try pair.client.write([1, 2])
        pair.client.connection.closeOutput()
        pair.run(chunk: chunk)
        #expect(pair.server.received == [1, 2])
        #expect(pair.server.events.last == .inputClosed)
        #expect(!pair.client.inputClosed)
        try pair.server.write([3, 4, 5])
        pair.server.connection.closeOutput()
        pair.run(chunk: chunk)
        #expect(pair.client.received == [3, 4, 5])
        #expect(pair.client.events.last == .inputClosed)
        #expect(pair.client.connection.transportClosed() == .clean)
        #expect(pair.server.connection.transportClosed() == .clean)
        #expect(pair.keptPromise)
    }

    @Test(arguments: ServerKind.allCases)
    func anEndWithoutCloseNotifyIsATruncation(_ kind: ServerKind) throws {
        let pair = try self.open(kind)
        try pair.client.write([1, 2])
        pair.run()
        #expect(pair.server.connection.transportClosed() == .truncated)
        #expect(pair.server.failure == nil)
    }

    @Test(arguments: ServerKind.allCases)
    func anEndInTheMiddleOfARecordIsATruncation(_ kind: ServerKind) throws {
        let pair = try self.open(kind)
        try pair.client.write([1, 2])
        pair.client.connection.closeOutput()
        let bytes = pair.client.takeOutput()
        #expect(pair.server.deliver(Array(bytes.dropLast())))
        #expect(pair.server.received == [1, 2])
        #expect(pair.server.connection.transportClosed() == .truncated)
    }

    @Test func anEndDuringTheHandshakeIsAFailure() throws {
        let pair = try SecurePair(Fixture.client(), Fixture.server())
        #expect(pair.client.connection.transportClosed() == .truncated)
        _ = pair.client.deliver([])
        #expect(pair.client.failure?.kind == .closedDuringHandshake)
    }

    @Test(arguments: ServerKind.allCases)
    func writeAfterCloseSendsNothing(_ kind: ServerKind) throws {
        let pair = try self.open(kind)
        pair.client.connection.closeOutput()
        let error = #expect(throws: TLSFailure.self) { try pair.client.write([1]) }
        #expect(error?.kind == .outputClosed)
    }

    @Test(arguments: ServerKind.allCases)
    func secondCloseSendsNoCloseNotify(_ kind: ServerKind) throws {
        let pair = try self.open(kind)
        pair.client.connection.closeOutput()
        let once = pair.client.takeOutput()
        #expect(!once.isEmpty)
        pair.client.connection.closeOutput()
        #expect(pair.client.takeOutput().isEmpty)
    }

    @Test(arguments: ServerKind.allCases)
    func earlyWritesAndCloseLeaveAfterTheHandshake(_ kind: ServerKind) throws {
        let pair = try SecurePair(Fixture.client(), Fixture.server(kind: kind))
        try pair.client.write([1, 2])
        try pair.client.write([3])
        try pair.server.write([4])
        #expect(pair.client.connection.pendingPlaintext == 3)
        pair.client.connection.closeOutput()
        pair.run()
        #expect(pair.client.connection.pendingPlaintext == 0)
        #expect(pair.server.received == [1, 2, 3])
        #expect(pair.server.inputClosed)
        #expect(pair.client.received == [4])
    }

    @Test(arguments: ServerKind.allCases)
    func bytesAfterCloseNotifyAreIgnored(_ kind: ServerKind) throws {
        let pair = try self.open(kind)
        pair.client.connection.closeOutput()
        #expect(pair.server.deliver(pair.client.takeOutput() + [1, 2, 3]))
        #expect(pair.server.deliver([4]))
        #expect(pair.server.failure == nil)
        #expect(pair.server.connection.transportClosed() == .clean)
    }

    private func open(_ kind: ServerKind) throws -> SecurePair {
        let pair = try SecurePair(Fixture.client(), Fixture.server(kind: kind))
        pair.run()
        try #require(pair.client.metadata != nil && pair.server.metadata != nil)
        return pair
    }
}
