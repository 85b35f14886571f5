/// The status codes whose responses may be kept without being told for how long (RFC 9110 §15.1).
enum HeuristicStatus {
    static func contains(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }
}
