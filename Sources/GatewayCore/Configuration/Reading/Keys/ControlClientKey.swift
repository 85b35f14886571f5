/// Keys of an entry of `control.clients`.
package enum ControlClientKey: String, CaseIterable, Sendable {
    case name
    case subject
    case alternativeName = "alternative-name"
    case pin
    case scopes
}
