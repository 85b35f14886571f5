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
    private let made = Mutex<[ProtocolEncoding: Made]>([:])

    init(base: UInt64, from former: Payload, to current: Payload) {
        self.base = base
        self.former = former
        self.current = current
    }

    /// - Returns: `nil` where the publication is not longer than the difference. Other loops wait meanwhile: they would
    ///   need the same time to make it.
    func content(in encoding: ProtocolEncoding) -> [UInt8]? {
        // JSON on one line is the same in both encodings; bytes are not.
        let isText = [self.former, self.current].allSatisfy { $0.content(in: .json) == $0.bytes }
        return self.made.withLock { made in
            switch made[isText ? .json : encoding] {
            case .shorter(let content): return content
            case .notShorter: return nil
            case nil:
                let content = self.current.delta(to: self.former, in: encoding)
                made[isText ? .json : encoding] = content.map(Made.shorter) ?? .notShorter
                return content
            }
        }
    }
}
