/// How we want messages compressed, whichever side we are; nothing is compressed where there is no policy.
///
/// Values outside of their ranges are brought into them.
public struct DeflatePolicy: Equatable, Sendable {
    /// Whether our messages may refer to earlier ones: smaller, but up to 256 KiB stay with the connection. Default:
    /// yes.
    public var keepsOwnContext: Bool
    /// Whether the peer's messages may refer to earlier ones: smaller, but up to 40 KiB stay with the connection.
    /// Default: yes.
    public var letsPeerKeepContext: Bool
    /// Largest window for our messages, as a power of two, 8 to 15 (default). 8 costs as much as 9.
    public var ownWindowBits: Int
    /// Largest window that the peer may use, as a power of two, 8 to 15 (default).
    public var peerWindowBits: Int
    /// Whether to go without compression rather than with a peer that does not grant `peerWindowBits`. Default: no.
    public var insistsOnPeerWindow: Bool
    /// 1 (fastest) to 9 (smallest), 6 by default; 0 stores without compressing.
    public var level: Int
    /// Memory for the search beside the window, 1 to 9 (default 8): 2 to the power of this plus 9, in bytes.
    public var memoryLevel: Int
    /// Messages shorter than this many bytes go uncompressed. Default: 64.
    public var minimumSize: Int

    public init(
        keepsOwnContext: Bool = true, letsPeerKeepContext: Bool = true, ownWindowBits: Int = 15,
        peerWindowBits: Int = 15,
        insistsOnPeerWindow: Bool = false, level: Int = 6, memoryLevel: Int = 8, minimumSize: Int = 64
    ) {
        self.keepsOwnContext = keepsOwnContext
        self.letsPeerKeepContext = letsPeerKeepContext
        self.ownWindowBits = min(max(ownWindowBits, 8), 15)
        self.peerWindowBits = min(max(peerWindowBits, 8), 15)
        self.insistsOnPeerWindow = insistsOnPeerWindow
        self.level = min(max(level, 0), 9)
        self.memoryLevel = min(max(memoryLevel, 1), 9)
        self.minimumSize = max(minimumSize, 0)
    }
}
