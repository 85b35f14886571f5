/// How much of what the deflater holds back must come out.
package enum DeflateFlush: Equatable, Sendable {
    /// Nothing needs to; compresses best.
    case none
    /// Everything, up to a byte boundary: the output then ends with `00 00 FF FF`, an empty stored block. A second
    /// flush with no input in between gives nothing at all; an empty message is the one byte `00` (RFC 7692
    /// §7.2.3.6).
    case sync
    /// As `sync`, and nothing behind refers to anything before.
    case full
    /// Everything, and the stream ends here. `reset()` begins the next one.
    case finish

    var flag: Int32 {
        switch self {
        case .none: 0  // Z_NO_FLUSH
        case .sync: 2  // Z_SYNC_FLUSH
        case .full: 3  // Z_FULL_FLUSH
        case .finish: 4  // Z_FINISH
        }
    }
}
