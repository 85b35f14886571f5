/// History and permissions of the rooms whose names match a pattern.
package struct RoomPolicy: Sendable, Equatable {
    /// Clients that an operation in a room is permitted to.
    package enum Permission: String, Sendable, Hashable, CaseIterable {
        case everyone
        /// Clients that have a user name from a token or a trusted header.
        case users
        /// Members of the room.
        case members
        /// Clients whose token names the room. For `publish` the token's subscription.
        case token
        case nobody

        /// - Parameters:
        ///   - hasName: whether the client has a user name.
        ///   - hasToken: whether the client is a member by a token that permits it.
        func allows(hasName: Bool, isMember: Bool, hasToken: Bool) -> Bool {
            switch self {
            case .everyone: true
            case .users: hasName
            case .members: isMember
            case .token: isMember && hasToken
            case .nobody: false
            }
        }
    }

    /// Recovery of a client that reconnects.
    package enum Recovery: String, Sendable, Hashable, CaseIterable {
        case off
        /// Everything that it missed.
        case stream
        /// The newest publication alone, if it missed any.
        case cache
    }

    /// Policy for a member that reads more slowly than the room publishes.
    package enum SlowReaders: String, Sendable, Hashable, CaseIterable {
        /// Its connection ends with the code 3008, and it recovers what it missed when it is back.
        case disconnect
        /// It loses its oldest messages.
        case dropOldest = "drop-oldest"
        /// It loses all messages but the newest.
        case skipToLatest = "skip-to-latest"
    }

    /// Formats in which clients may get publications as differences to the one before.
    package enum Deltas: String, Sendable, Hashable, CaseIterable {
        case none
        case fossil
    }

    package var name: String
    package var pattern: RoomPattern
    /// Publications kept; 0 keeps none.
    package var historySize = 0
    /// How long the history is kept after the last publication.
    package var historyTime: Duration = .seconds(300)
    /// Bytes of publications kept, whatever their number.
    package var historyBytes = 4 << 20
    package var recovery = Recovery.off
    package var hasPresence = false
    package var sendsJoinLeave = false
    package var subscribe = Permission.everyone
    package var publish = Permission.members
    /// Clients that may read presence and history.
    package var read = Permission.members
    /// Of a publication, in bytes.
    package var maximumMessageSize = 64 << 10
    /// Publications of one connection in a second, on average; `nil` is unlimited.
    package var publicationRate: Int?
    /// Entries of one connection in a second, on average, where members hear of them.
    package var joinRate = 5
    /// Members on this gateway; `nil` is unlimited.
    package var maximumMembers: Int?
    package var slowReaders = SlowReaders.disconnect
    package var deltas = Deltas.none
    /// Clients may ask for publications with certain tags alone.
    package var allowsFilters = false
    /// Stands for all rooms, because the configuration has no policies.
    package private(set) var isImplied = false

    package init(name: String, pattern: RoomPattern) {
        self.name = name
        self.pattern = pattern
    }

    package var keepsHistory: Bool { self.historySize > 0 }

    /// For rooms of a configuration without policies: everyone may do everything, and nothing is kept.
    package static var open: RoomPolicy {
        var policy = RoomPolicy(name: "default", pattern: RoomPattern("*"))
        policy.publish = .everyone
        policy.isImplied = true
        return policy
    }
}

/// Matches names of rooms. `*` matches any text, also none; all other characters match themselves.
package struct RoomPattern: Sendable, Hashable, CustomStringConvertible {
    package let description: String
    private let pieces: [[UInt8]]

    package init(_ text: String) {
        self.description = text
        self.pieces = text.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map(Array.init)
    }

    package func matches(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        guard let first = self.pieces.first, bytes.starts(with: first) else { return false }
        guard self.pieces.count > 1, let last = self.pieces.last else { return bytes.count == first.count }
        // The pieces between the first and the last are found from left to right, each at its first occurrence.
        var start = first.count
        for piece in self.pieces.dropFirst().dropLast() {
            guard let found = Self.find(piece, in: bytes, from: start) else { return false }
            start = found + piece.count
        }
        return bytes.count - start >= last.count && bytes.suffix(last.count).elementsEqual(last)
    }

    private static func find(_ piece: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
        guard !piece.isEmpty else { return start }
        var index = start
        while index + piece.count <= bytes.count {
            if bytes[index..<(index + piece.count)].elementsEqual(piece) { return index }
            index += 1
        }
        return nil
    }
}
