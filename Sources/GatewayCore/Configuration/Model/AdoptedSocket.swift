/// Which of the handed-over sockets is meant.
package enum AdoptedSocket: Sendable, Hashable, CustomStringConvertible {
    /// By its `FileDescriptorName=` (from `LISTEN_FDNAMES`).
    case name(String)
    /// By its place, 0 for the first (descriptor 3).
    case index(Int)

    package var description: String {
        switch self {
        case .name(let name): name
        case .index(let index): String(index)
        }
    }
}
