import Testing

/// Worlds that once broke a guarantee, as short as they could be made: each is a bug that is mended.
struct CorpusCase: Sendable, CustomTestStringConvertible {
    var name: String
    var app: String
    var script: String

    var testDescription: String { name }

    static let all = [
        CorpusCase(
            name: "an answer to what this file's former owner sent is nobody's (I2)", app: "ledger",
            script: """
                world seed 1 devices 2 users 1 page 50
                pass 0
                server fail 1
                1 edit transfer 1
                flow
                wait 31000
                pass 0
                0 sync
                server fail 3
                1 sync
                flow
                0 clone 1
                pass 0
                pass 0
                pass 0
                pass 0 old
                """),
        CorpusCase(
            name: "what was set aside with a scope is not given back over what was made since (I5)", app: "task",
            script: """
                world seed 1 devices 1 users 1 page 50
                flow
                2 edit replaceProject 0
                user 0 scope 0 none
                flow
                2 edit addProject 5221964
                2 sync
                2 edit deleteProject 9055894
                flow
                2 edit addProject 0
                """),
        CorpusCase(
            name: "a delete that found nothing can be lost, too (I10, I12)", app: "order",
            script: """
                world seed 1 devices 3 users 1 page 50
                1 edit orderAtOnce 0
                flow
                1 edit orderAtOnce 0
                2 sync
                0 sync
                pass 1
                server restore
                pass 1
                0 edit deleteCustomer 926294
                flow
                server restore
                """),
        CorpusCase(
            name: "of two references that a record is brought back with, both get their ids (I4)", app: "order",
            script: """
                world seed 1 devices 1 users 1 page 50
                flow
                1 edit orderAtOnce 7126410
                pass 0
                1 edit addCustomer 0
                1 edit addCustomer 0
                server restore
                1 edit reassign 6947551
                """),
        CorpusCase(
            name: "who makes and deletes a row while its namesake waits off the table deletes only that row (I2)",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit replaceProject 1
                0 edit addProject 0
                0 edit moveSlug 7949118
                flow
                wait 31000
                1 edit replaceProject 0
                1 edit deleteProject 0
                """),
        CorpusCase(
            name: "a second loss of history in mid-recovery leaves no row of the first (I2, I4)", app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                flow
                1 edit addProject 0
                pass 0
                server restore
                server fail 4
                1 sync
                1 sync
                0 edit writeTask 1210568
                1 edit writeTask 13364793
                0 kill 0
                flow
                wait 2000
                1 kill 18
                flow
                server restore
                """),
        CorpusCase(
            name: "a conflict that is decided for this device keeps what was edited since (I5)", app: "notebook",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit addNote 0
                0 edit listFirst 0
                flow
                0 edit decisionAdd 3142780
                1 edit decisionAdd 15089246
                1 edit decisionFirst 1804503
                """),
        CorpusCase(
            name: "and that the record was deleted since (I5)", app: "notebook",
            script: """
                world seed 1 devices 3 users 1 page 50
                3 edit decisionFirst 0
                flow
                3 edit decisionAdd 0
                pass 0 lost
                1 edit decisionAdd 0
                3 edit decisionDelete 0
                """),
        CorpusCase(
            name: "what a copy of a file deletes stays deleted, though only the other copy heard of its insert (I1)",
            app: "shelf",
            script: """
                world seed 1 devices 2 users 1 page 50
                flow
                1 edit addBox 11311353
                1 sync
                1 clone 0
                0 edit deleteBox 154128
                """),
        CorpusCase(
            name: "the delete of a record that comes back under another id reaches nobody else's (I4)", app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit addCustomer 0
                flow
                1 edit addCustomer 0
                0 edit deleteCustomer 15976139
                server restore
                flow
                server restore
                """),
        CorpusCase(
            name: "ids that are given anew one after the other are not mixed up (I4)", app: "order",
            script: """
                world seed 1 devices 2 users 1 page 2
                0 edit orderAtOnce 0
                flow
                1 edit orderAtOnce 0
                0 edit orderAtOnce 11734216
                pass 0
                pass 0
                0 edit orderAtOnce 1
                1 edit addCustomer 0
                0 edit orderAtOnce 0
                pass 1
                pass 1
                server restore
                """),
        CorpusCase(
            name: "a new record whose id was somebody else's in a lost history is the new one (I4)", app: "order",
            script: """
                world seed 1 devices 3 users 1 page 50
                1 edit cancel 0
                2 edit orderAtOnce 0
                2 edit cancel 0
                3 edit reassign 0
                1 edit orderAtOnce 0
                0 edit addCustomer 0
                3 edit order 0
                3 edit addCustomer 0
                0 edit deleteCustomer 0
                flow
                1 edit addCustomer 0
                server restore
                1 edit deleteCustomer 8443607
                """),
        CorpusCase(
            name: "what another device's record is called is fetched before its namesake is renamed (I4)", app: "order",
            script: """
                world seed 1 devices 3 users 1 page 50
                1 edit orderAtOnce 0
                flow
                1 clone 2
                server restore
                pass 0
                0 edit orderAtOnce 0
                pass 0
                pass 1
                pass 1
                pass 0
                pass 0 replaced
                """),
        CorpusCase(
            name: "two copies of a file get an id each for one temporary id, and keep their own (I4)", app: "order",
            script: """
                world seed 1 devices 2 users 2 page 50
                1 edit orderAtOnce 0
                flow
                server restore
                1 clone 0
                """),
        CorpusCase(
            name: "a new page of a lost history's successor is asked about first (I11)", app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit addProject 0
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                server restore
                1 edit writeTask 0
                flow
                """),
        CorpusCase(
            name: "the delete in a scope that a record left, brought back, is no edit of the record (I4)", app: "shelf",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit addBox 0
                flow
                server restore
                2 edit moveBox 1438914
                2 edit deleteBox 0
                """),
        CorpusCase(
            name: "what is deleted while its id and its namesake's are given anew stays deleted (I4)", app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit orderAtOnce 0
                1 edit renameCustomer 0
                1 edit orderTogether 0
                0 edit renameCustomer 0
                flow
                1 edit deleteCustomer 0
                1 edit addCustomer 0
                flow
                0 edit renameCustomer 0
                server node 0 settings 3939129
                0 edit renameCustomer 0
                0 edit orderAtOnce 0
                server restore
                flow
                1 edit orderAtOnce 0
                pass 0 replaced
                1 edit deleteCustomer 0
                """),
        CorpusCase(
            name: "a new record takes the place of one that a restored server does not know any more (I4)",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 2
                0 edit orderTogether 0
                1 edit addCustomer 0
                0 edit addCustomer 0
                0 edit deleteCustomer 1
                0 edit orderTogether 0
                0 edit addCustomer 0
                flow
                1 edit renameCustomer 0
                1 edit renameCustomer 0
                1 edit orderTogether 0
                server restore
                """),
        CorpusCase(
            name: "a row that names an id's new holder goes on naming it when the former one moves (I4)", app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit order 0
                1 edit addCustomer 0
                flow
                server restore
                1 edit orderTogether 0
                pass 0
                pass 0
                pass 0 cut 129
                0 edit order 0
                flow
                0 edit orderAtOnce 0
                """),
        CorpusCase(
            name: "what is made again over a delete of one's own is listed where it met another edit (T1)",
            app: "notebook",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit listAdd 3728642
                flow
                1 edit listDelete 3728642
                pass 0
                pass 0 replaced
                0 edit listSecond 3728642
                1 edit listAdd 164913
                """),
        CorpusCase(
            name: "who deletes a row made here has not seen the delete of its namesake (I2)", app: "order",
            script: """
                world seed 1 devices 2 users 1 page 1
                1 edit order 1
                1 edit order 0
                pass 1
                pass 0
                pass 0
                pass 1
                pass 1
                pass 1
                1 edit cancel 0
                pass 0
                0 edit orderAtOnce 0
                pass 0
                pass 0
                pass 0
                0 edit cancel 0
                """),
        CorpusCase(
            name: "versions end with their history, also where a restored server took the same once more (I4)",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit orderTogether 0
                pass 0 lost
                1 edit addCustomer 0
                flow
                0 sync
                pass 0
                pass 0
                pass 0 repeated
                server restore
                """),
        CorpusCase(
            name: "and where the answer to an edit came from the restored server before the snapshot did (I4)",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit orderTogether 0
                pass 0 lost
                1 edit addCustomer 0
                flow
                server backup
                1 edit addCustomer 0
                flow
                0 sync
                pass 0
                pass 0
                pass 0 repeated
                server restore
                pass 0
                pass 0
                0 edit addCustomer 0
                pass 0
                pass 0 lost
                """),
        CorpusCase(
            name: "and where the lost history had answered with nothing but a conflict (I2)", app: "notebook",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit decisionAdd 0
                pass 0 lost
                1 edit moodAdd 0
                1 edit decisionAdd 0
                flow
                0 sync
                pass 0
                pass 0
                pass 0 repeated
                server restore
                """),
    ]
}
