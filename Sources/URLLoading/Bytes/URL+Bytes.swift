import Foundation

extension URL {
    /// The content of the resource, byte by byte, loaded by the shared session when it is first read.
    public struct AsyncBytes: AsyncSequence, Sendable {
        public typealias Element = UInt8

        public struct AsyncIterator: AsyncIteratorProtocol {
            let url: URL
            var bytes: URLSession.AsyncBytes.AsyncIterator?

            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
                if self.bytes == nil {
                    self.bytes = try await URLSession.shared.bytes(from: self.url).0.makeAsyncIterator()
                }
                return try await self.bytes?.next(isolation: actor)
            }
        }

        let url: URL

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(url: self.url) }
    }

    /// The content of what the URL stands for.
    public var resourceBytes: AsyncBytes { AsyncBytes(url: self) }

    /// The lines of what the URL stands for, as `AsyncSequence.lines` makes them.
    public var lines: AsyncLineSequence<AsyncBytes> { self.resourceBytes.lines }
}
