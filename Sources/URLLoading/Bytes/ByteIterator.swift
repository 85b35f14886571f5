/// Byte by byte through the runs of a channel; suspends only between them.
@usableFromInline
package struct ByteIterator: AsyncIteratorProtocol {
    @usableFromInline var run: [UInt8] = []
    @usableFromInline var position = 0
    @usableFromInline let reader: ByteReader

    package init(_ reader: ByteReader) {
        self.reader = reader
    }

    @inlinable
    package mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
        if self.position == self.run.count, try await !self.loadRun(isolation: actor) { return nil }
        defer { self.position += 1 }
        return self.run[self.position]
    }

    /// - Returns: whether there is another byte.
    @usableFromInline
    package mutating func loadRun(isolation actor: isolated (any Actor)?) async throws -> Bool {
        let run = try await self.reader.nextRun(isolation: actor)
        self.run = run ?? []
        self.position = 0
        return run != nil
    }
}
