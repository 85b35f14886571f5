extension AsyncSequence where Element == UInt8 {
    /// The lines of the text that the bytes are in UTF-8, without what ends them; empty ones are left out.
    @inlinable
    public var lines: AsyncLineSequence<Self> { AsyncLineSequence(self) }

    /// The characters of the text that the bytes are in UTF-8.
    @inlinable
    public var characters: AsyncCharacterSequence<Self> { AsyncCharacterSequence(self) }

    /// The Unicode scalars of the text that the bytes are in UTF-8.
    @inlinable
    public var unicodeScalars: AsyncUnicodeScalarSequence<Self> { AsyncUnicodeScalarSequence(self) }
}
