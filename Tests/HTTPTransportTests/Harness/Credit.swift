import HTTPTransport
import Synchronization

/// The content that a consumer still accepts, in bytes; `Int.max` means all.
final class Credit: Sendable {
    private let bytes = Mutex(0)

    var demand: ContentDemand { .bytes(self.bytes.withLock { max(0, $0) }) }

    func add(_ count: Int) { self.bytes.withLock { $0 = count == .max ? .max : $0 + count } }
    func spend(_ count: Int) { self.bytes.withLock { if $0 != .max { $0 -= count } } }
}
