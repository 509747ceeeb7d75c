import Testing

/// Worlds that once broke a guarantee, as short as they could be made: each is a bug that is mended.
struct CorpusCase: Sendable, CustomTestStringConvertible {
    var name: String
    var app: String
    var script: String

    var testDescription: String { name }

    static let all = orders + servers + long + losses + unseen + others

    private static let others = [
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
            name: "a scope that is given back does not take a record that was made anew in another one (I5)",
            app: "shelf",
            script: """
                world seed 1 devices 2 users 1 page 50
                flow
                user 0 scope 1 none
                1 edit addBox 1
                flow
                wait 31000
                pass 0
                user 0 scope 1 read
                pass 2
                1 edit addBox 7602021
                """),
        CorpusCase(
            name: "what is deleted before its move is settled leaves the scope that it came from too (I4)",
            app: "shelf",
            script: """
                world seed 1 devices 1 users 1 page 50
                0 edit addBox 2381434
                flow
                0 edit moveBox 0
                pass 0
                0 backup
                1 sync
                pass 0
                pass 0
                pass 0
                0 edit deleteBox 0
                pass 1
                0 restore
                0 edit deleteBox 0
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
        CorpusCase(
            name: "a record of which a restored server got back a part is in the scope that has it (I4)", app: "shelf",
            script: """
                world seed 1 devices 3 users 1 page 50
                1 edit addBox 1
                flow
                2 kill 0
                2 start
                server restore
                flow
                0 edit labelBox 1
                0 clone 1
                """),
        CorpusCase(
            name: "a row that moves while an edit of it is refused goes with what it had (I8)", app: "shelf",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit addBox 1806245
                flow
                2 edit deleteBox 11750601
                1 edit labelBox 1665362
                1 edit moveBox 9104716
                """),
        CorpusCase(
            name: "children of a deleted parent are settled when an edit that kept it is refused later (I4)",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit replaceProject 11065717
                flow
                user 0 scope 0 read
                0 edit moveSlug 5768181
                0 edit writeTask 3729947
                pass 0
                1 edit deleteProject 4843609
                """),
        CorpusCase(
            name: "what is made again as it was sent is one edit with what was sent (I5)",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit replaceProject 1
                pass 0
                0 edit replaceProject 8946455
                pass 0
                pass 0
                pass 1
                pass 1 cut 155
                0 edit replaceProject 1
                0 edit moveSlug 9362320
                """),
        CorpusCase(
            name: "a record of which a restored server got back a part stands where somebody has the rest (I4)",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit replaceProject 1
                flow
                wait 691200000
                pass 1
                flow
                wait 31000
                pass 1
                server restore
                1 edit moveSlug 3511982
                """),
        CorpusCase(
            name: "a device that may only read when its server has lost history learns what was lost (I11)",
            app: "notebook",
            script: """
                world seed 1 devices 4 users 1 page 50
                pass 0
                pass 0
                1 edit listAdd 0
                pass 0
                pass 2
                pass 0
                pass 2
                user 0 scope 0 read
                server restore
                flow
                2 edit moodAdd 0
                """),
        CorpusCase(
            name: "and brings it back once it may write (I11)",
            app: "ledger",
            script: """
                world seed 1 devices 4 users 1 page 50
                pass 0
                pass 0
                0 edit transfer 1
                pass 2
                pass 0
                pass 2
                user 0 scope 0 read
                server restore
                1 edit transfer 1
                flow
                """),
        CorpusCase(
            name: "a device that was forgotten before the answer reached it is not told what its edit met (T1)",
            app: "notebook",
            script: """
                world seed 1 devices 2 users 1 page 50
                flow
                1 edit addNote 1
                0 edit addNote 1
                0 kill 0
                flow
                wait 691200000
                server compact 7200000
                """),
        CorpusCase(
            name: "an edit is in the log of its scope, though its record has moved on with it (I5)",
            app: "shelf",
            script: """
                world seed 1 devices 2 users 1 page 50 shuffled
                0 kill 6
                flow
                1 edit addBox 15684820
                1 kill 0
                0 start
                flow
                0 edit moveBox 542017
                flow
                """),
        CorpusCase(
            name: "while it is filled anew, a row may be of two histories: an edit lies over the lost one (I2)",
            app: "task",
            script: """
                world seed 1 devices 4 users 1 page 50
                3 edit replaceProject 12864352
                flow
                2 edit replaceProject 12864352
                server restore
                0 sync
                0 edit renameProject 0
                """),
        CorpusCase(
            name: "a record deleted here stays deleted when a restored server says that it never was (I1, I5)",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit replaceProject 0
                flow
                1 sync
                0 sync
                1 edit writeTask 7792457
                wait 31000
                1 edit writeTask 52517
                server backup
                flow
                0 edit renumberTask 52517
                0 edit deleteTask 607974
                server restore
                """),
        CorpusCase(
            name: "whom an old refusal has stopped that has nothing to send asks again in its own time (I12)",
            app: "ledger",
            script: """
                world seed 1972660655178347232 devices 2 users 1 page 50
                user 0 scope 0 read
                0 edit transfer 1
                flow
                0 edit annotate 0
                user 0 scope 0 readWrite
                1 kill 0
                flow
                wait 31000
                pass 0
                pass 0 old
                """),
    ]
}
