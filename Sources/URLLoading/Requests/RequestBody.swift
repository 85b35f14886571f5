import Foundation

/// What a request sends: one kind of body excludes the other.
enum RequestBody {
    case none
    case data(Data)
    case stream(InputStream)
}

extension RequestBody: Hashable {
    /// Streams are equal when they are one and the same: reading them to compare would use them up.
    static func == (lhs: Self, rhs: Self) -> Bool {
        switch (lhs, rhs) {
        case (.none, .none): true
        case (.data(let one), .data(let other)): one == other
        case (.stream(let one), .stream(let other)): one === other
        default: false
        }
    }

    func hash(into hasher: inout Hasher) {
        switch self {
        case .none: hasher.combine(0)
        case .data(let data): hasher.combine(data)
        case .stream(let stream): hasher.combine(ObjectIdentifier(stream))
        }
    }
}
