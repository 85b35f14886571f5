import Foundation
import GatewayCore
import URLLoading

/// A transfer that was asked for, and passed every check.
struct TransferOrder: Sendable {
    enum Body: Sendable {
        case none
        case data(Data)
        case file(OpenFile, path: String)
        /// Another request brings it.
        case streamed
    }

    /// Without credentials.
    var request: URLRequest
    var body = Body.none
    var destination: TransferPlace?
    var overwrites = false
    var credential: TransferCredential?
    var followsRedirects = true
    var trustsAnyone = false
    /// Trusted in place of the system's roots: PEM.
    var authorities: [UInt8]?
    var timeout = Duration.seconds(7 * 86_400)
    var bodyLimit: Int
    var memoryLimit: Int
    var startsAtOnce = true
    var description: String?
    var priority: Float = 0.5
    var labels: [String: String] = [:]

    /// As `URLSession` tells its tasks apart.
    enum Kind: String, CaseIterable {
        case data, upload, download
    }

    var kind: Kind {
        if self.destination != nil { return .download }
        if case .none = self.body { return .data }
        return .upload
    }

    var isStreamed: Bool {
        if case .streamed = self.body { true } else { false }
    }

    /// Bytes of the body that are held in memory.
    var heldBytes: Int {
        if case .data(let data) = self.body { data.count } else { 0 }
    }

    /// Whether nothing about its connections keeps others from using them.
    var isPlain: Bool { self.credential == nil && !self.trustsAnyone && self.authorities == nil }
}
