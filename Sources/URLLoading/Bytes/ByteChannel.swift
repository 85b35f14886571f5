import Foundation
final class ByteChannel: Sendable {
    func offer(_ data: Data) {}
    func finish(_ error: (any Error)?) {}
}
