/// What a client sends: members that it does not have are refused, so that a misspelt one is not silently without
/// effect.
package protocol StrictlyRead: Decodable, Sendable {
    /// Every member's name.
    static var members: [String] { get }
    /// Members that are such objects themselves.
    static var nested: [String: any StrictlyRead.Type] { get }
}

extension StrictlyRead {
    package static var nested: [String: any StrictlyRead.Type] { [:] }
}
