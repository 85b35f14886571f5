import Rooms
import Synchronization

/// The difference of a publication to the one before it in its room. It is made when the first member gets it, once for
/// all loops and members.
final class PublicationDelta: Sendable {
    private enum Made {
        case shorter([UInt8])
        case notShorter
    }

    /// `RoomMessage.sequence` of the publication before.
    let base: UInt64
    private let former: Payload
    private let current: Payload
    private let state = Mutex(State())

    private struct State {
        var made: [ProtocolEncoding: Made] = [:]
        /// Whether the difference is the same in both encodings; `nil` before the first.
        var isShared: Bool?
    }

    init(base: UInt64, from former: Payload, to current: Payload) {
        self.base = base
        self.former = former
        self.current = current
    }

    /// - Returns: `nil` where the publication is not longer than the difference. Other loops wait meanwhile: they would
    ///   need the same time to make it.
    func content(in encoding: ProtocolEncoding) -> [UInt8]? {
        self.state.withLock { state in
            let isShared = state.isShared ?? (self.former.isJSONOnOneLine && self.current.isJSONOnOneLine)
            state.isShared = isShared
            switch state.made[isShared ? .json : encoding] {
            case .shorter(let content): return content
            case .notShorter: return nil
            case nil:
                let content = self.current.delta(to: self.former, in: encoding)
                state.made[isShared ? .json : encoding] = content.map(Made.shorter) ?? .notShorter
                return content
            }
        }
    }
}
