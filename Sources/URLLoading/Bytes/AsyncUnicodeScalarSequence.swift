/// The Unicode scalars of a text in UTF-8. Bytes that are none become U+FFFD.
public struct AsyncUnicodeScalarSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    public typealias Element = Unicode.Scalar
    public typealias Failure = Base.Failure

    public struct AsyncIterator: AsyncIteratorProtocol {
        public typealias Element = Unicode.Scalar
        public typealias Failure = Base.Failure

        @usableFromInline var bytes: Base.AsyncIterator
        @usableFromInline var decoder = ScalarDecoder()
        /// To be looked at once more.
        @usableFromInline var leftover: UInt8?
        @usableFromInline var isAtEnd = false

        @inlinable
        init(_ bytes: Base.AsyncIterator) {
            self.bytes = bytes
        }

        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Unicode.Scalar? {
            while !self.isAtEnd {
                guard let byte = try await self.nextByte(isolation: actor) else {
                    self.isAtEnd = true
                    return self.decoder.finish()
                }
                var isTaken = true
                let scalar = self.decoder.push(byte, isTaken: &isTaken)
                if !isTaken { self.leftover = byte }
                if let scalar { return scalar }
            }
            return nil
        }

        @inlinable
        mutating func nextByte(isolation actor: isolated (any Actor)?) async throws(Failure) -> UInt8? {
            if let leftover = self.leftover {
                self.leftover = nil
                return leftover
            }
            return try await self.bytes.next(isolation: actor)
        }
    }

    @usableFromInline let source: Base

    @inlinable
    init(_ source: Base) {
        self.source = source
    }

    @inlinable
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self.source.makeAsyncIterator()) }
}

extension AsyncUnicodeScalarSequence: Sendable where Base: Sendable {}

@available(*, unavailable)
extension AsyncUnicodeScalarSequence.AsyncIterator: Sendable {}
