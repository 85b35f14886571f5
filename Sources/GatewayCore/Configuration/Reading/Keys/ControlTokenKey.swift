/// Keys of an entry of `control.tokens`.
package enum ControlTokenKey: String, CaseIterable, Sendable {
    case name
    case hash
    case scopes
    case expires
}
