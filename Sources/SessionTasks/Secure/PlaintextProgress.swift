import DequeModule

/// How much of the plaintext written to a TLS connection has left, as the transport below tells by the ciphertext
/// that it has sent.
package struct PlaintextProgress {
    /// - Parameters:
    ///   - plain: plaintext up to its end.
    ///   - below: ciphertext up to its end; `nil` while the engine keeps the plaintext.
    private typealias Piece = (plain: UInt64, below: UInt64?)

    /// Bytes given.
    package private(set) var acceptedBytes: UInt64 = 0
    private var sentBytes: UInt64 = 0
    private var pieces: Deque<Piece> = []
    /// Plaintext that the engine keeps, until it has received the rest of a message that the peer has begun.
    package private(set) var keptBytes = 0

    package init() {}

    package mutating func accepted(_ count: Int) {
        self.acceptedBytes &+= UInt64(count)
    }

    /// - Parameter below: ciphertext written so far; `nil` if the engine keeps these bytes, and all that follow.
    package mutating func encrypted(_ count: Int, below: UInt64?) {
        if below == nil { self.keptBytes += count }
        self.pieces.append((plain: (self.pieces.last?.plain ?? self.sentBytes) &+ UInt64(count), below: below))
    }

    /// The engine has encrypted what it kept.
    package mutating func keptEncrypted(below: UInt64) {
        self.keptBytes = 0
        for index in self.pieces.indices where self.pieces[index].below == nil { self.pieces[index].below = below }
    }

    /// - Parameter below: ciphertext sent.
    /// - Returns: plaintext of which every record was sent.
    package mutating func sent(below: UInt64) -> UInt64 {
        while let first = self.pieces.first, let end = first.below, end <= below {
            self.sentBytes = first.plain
            self.pieces.removeFirst()
        }
        return self.sentBytes
    }
}
